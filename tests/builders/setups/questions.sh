set -e
mkdir -p questions/qrels
cat > questions/corpus.jsonl <<'end'
{"_id": "holidays", "title": "Holidays", "text": "Every employee has 25 days of paid leave a year."}
{"_id": "travel", "title": "Travel costs", "text": "Train tickets are paid back within two weeks."}
{"_id": "연차", "title": "휴가 안내", "text": "연차 휴가는 입사 후 1년이 지나면 15일이 주어집니다."}
end
cat > questions/queries.jsonl <<'end'
{"_id": "q1", "text": "how many days of leave do I get"}
{"_id": "q2", "text": "when is my train ticket paid back"}
{"_id": "q3", "text": "연차 휴가는 며칠입니까"}
end
printf 'query-id\tcorpus-id\tscore\nq1\tholidays\t2\nq2\ttravel\t1\nq3\t연차\t2\n' > questions/qrels/test.tsv
