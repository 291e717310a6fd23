# Jobs: stopped, continued, killed, waited for, in process groups of their own. The state of a
# stopped process that is traced is t, not T.
set -m
sleep 5 & a=$!
kill -STOP $a; while ! [[ $(ps -o stat= -p $a) == [Tt]* ]]; do sleep 0.01; done
jobs | sed 's/  */ /g'
kill -CONT $a; while [[ $(jobs -s) ]]; do sleep 0.01; done; kill $a; wait $a; echo "killed $?"
(exit 7) & wait $!; echo "exit $?"
for i in 7 1 4; do (sleep 0.$i; echo "job $i") & done; wait; echo all
(trap 'echo child got TERM; exit 9' TERM; : >trapping; while :; do :; done) & b=$!
until [[ -e trapping ]]; do sleep 0.01; done; rm trapping; kill -TERM %%; wait $b; echo "trapped $?"
bash -c 'kill -TSTP $$; echo continued' & c=$!
while ! [[ $(ps -o stat= -p $c) == [Tt]* ]]; do sleep 0.01; done
until [[ $(jobs -s) ]]; do sleep 0.01; done; kill -CONT $c; while [[ $(jobs -s) ]]; do sleep 0.01; done; wait $c; echo "tstp $?"
sleep 0.05 | cat | (read x; echo "read $?"); echo "${PIPESTATUS[@]}"
coproc { read l; echo "co $l"; }; echo hello >&"${COPROC[1]}"; read r <&"${COPROC[0]}"; echo "$r"; wait $COPROC_PID
disown -a; jobs; echo end
