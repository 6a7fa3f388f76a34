#!/usr/bin/env bash
# Judges what RETRIEVER, DATASET and OPTIONS say, and always ends with 0: files and the exit code are told as
# NAME=VALUE, so that the answer is shown before the job ends with that code. Its argument is the folder for the files.
set -ufo pipefail
mkdir -p "$1"
rm -f "$1/junit.xml"
code=0
# Words of OPTIONS are words, and no patterns (-f).
retrieval-bench regress "$RETRIEVER" --dataset "$DATASET" $OPTIONS \
  --junit "$1/junit.xml" --format markdown > "$1/table.md" 2> "$1/log" || code=$?
cat "$1/table.md" "$1/log" >&2
{
  echo "### Search: $RETRIEVER on $DATASET: exit code $code"
  echo
  echo "0 nothing got worse, 1 it got worse, 2 bad input, 3 can't tell, 4 not measured"
  echo
  if [ -s "$1/table.md" ]; then cat "$1/table.md"; else printf '````text\n%s\n````\n' "$(cat "$1/log")"; fi
} > "$1/answer.md"
printf 'exit-code=%s\nanswer=%s\njunit=%s\n' "$code" "$1/answer.md" "$1/junit.xml"
