# The judgements and the run of the page on scoring.
printf '%s\n' 'q1 0 a 2' 'q1 0 b 1' 'q1 0 c 0' 'q2 0 d 1' 'q3 0 e 1' 'q3 0 f 1' > qrels.txt
printf '%s\n' 'q1 Q0 a 1 9.1 long' 'q1 Q0 x 2 8.4 long' 'q1 Q0 b 3 7.7 long' 'q2 Q0 y 1 5.0 long' > long.run
printf '%s\n' 'q2 Q0 d 2 4.2 long' 'q3 Q0 e 1 6.3 long' 'q3 Q0 f 2 6.1 long' 'q9 Q0 a 1 3.3 long' >> long.run
