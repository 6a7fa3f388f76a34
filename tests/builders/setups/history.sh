set -e
git init --quiet
echo results > .gitignore
echo '{name: mine, target: bm25}' > mine.yaml
git add . && git commit --quiet --message one
retrieval-bench bench mine.yaml > /dev/null
retrieval-bench bench mine.yaml > /dev/null
echo note > note.txt
git add . && git commit --quiet --message two
retrieval-bench bench mine.yaml > /dev/null
echo '{name: mine, target: bm25, params: {k1: 1.5}}' > mine.yaml
retrieval-bench bench mine.yaml > /dev/null
git commit --quiet --all --message three
retrieval-bench bench mine.yaml > /dev/null
