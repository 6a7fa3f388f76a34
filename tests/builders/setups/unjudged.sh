# A folder `mine` with documents and questions, of which nothing is judged, and a second retriever.
retrieval-bench data export science-mini --to beir --out mine > mine.log
mv mine/qrels/test.tsv truth.tsv
rm -r mine/qrels
printf 'format: beir\nname: mine\n' > mine/dataset.yaml
printf 'name: words\ntarget: bm25\nparams: {tokenizer: whitespace}\n' > words.yaml
