# Traps: of signals in builtins, in children, in wait, in read; of exits, errors.
trap 'echo exit trap $?' EXIT
trap 'echo usr1' USR1; trap 'echo usr2; kill -USR1 $$' USR2; trap '' HUP
kill -USR1 $$; kill -USR2 $$; kill -HUP $$; echo after
(sleep 0.1; kill -USR1 $$) & sleep 0.8; echo slept; wait
(sleep 0.1; kill -USR1 $$) & k=$!; wait $k; echo "wait $?"; wait
read -t 0.2 x < <(sleep 1); echo "read timeout $(($? > 128))"
(sleep 0.1; kill -USR1 $$) & read -t 0.9 x < <(sleep 2); echo "read $(($? > 128))"; wait
trap 'echo chld' CHLD; /bin/true; trap - CHLD
trap 'echo err $?' ERR; false; trap - ERR
trap 'echo debug' DEBUG; :; trap - DEBUG
bash -c 'trap "echo inner int; exit 3" INT; kill -INT $$; echo no'; echo "inner $?"
bash -c 'kill -SEGV $$'; echo "segv $?"
bash -c 'ulimit -c 0; kill -ABRT $$' ; echo "abrt $?"
f() { trap 'echo return' RETURN; return 4; }; f; echo "f $?"
timeout 0.2 sleep 5; echo "timeout $?"
timeout -s KILL 0.2 bash -c 'trap "" TERM; while :; do sleep 0.05; done'; echo "killed $?"
yes | head -1; echo "${PIPESTATUS[@]}"
trap; exit 5
