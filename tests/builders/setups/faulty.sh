set -e
mkdir -p faulty/qrels
cat > faulty/corpus.jsonl <<'end'
{"_id": "holidays", "text": "Every employee has 25 days of paid leave a year."}
{"_id": "travel", "text": "Train tickets are paid back within two weeks."}
{"_id": "leave", "text": "Leave must be asked for two weeks before."}
{"_id": "travel", "text": "Taxis are paid back, too."}
{"_id": "pets", "text": "Dogs are welcome
end
cat > faulty/queries.jsonl <<'end'
{"_id": "q1", "text": "how many days of leave"}
{"_id": "q2", "text": "when is my train ticket paid back"}
{"_id": "q3", "text": "who pays for a taxi"}
{"_id": "q4", "text": "may I bring my dog"}
{"_id": "q5", "text": " "}
end
printf 'query-id\tcorpus-id\tscore\nq1\tholidays\ttwo\nq2\ttravel\t1\nq2\ttravel\t2\n' > faulty/qrels/test.tsv
