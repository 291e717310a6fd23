# Threads that hand each other numbers through a queue, until line "go" comes.
import hashlib, queue, sys, threading, time

todo, stop, counts = queue.Queue(8), False, [0] * 4

def makes():
    n = 0
    while not stop:
        todo.put(n)
        n += 1

def takes(i):
    while (n := todo.get()) is not None:
        counts[i] += 1
        hashlib.sha256(str(n).encode()).hexdigest()
        if n % 50 == 0:
            time.sleep(0.001)

takers = [threading.Thread(target=takes, args=(i,)) for i in range(4)]
maker = threading.Thread(target=makes)
for t in takers + [maker]:
    t.start()
print("ready", flush=True)
sys.stdin.readline()
stop = True
maker.join()
for _ in takers:
    todo.put(None)
for t in takers:
    t.join()
print("taken", sum(counts) > 0)
sys.exit(4)
