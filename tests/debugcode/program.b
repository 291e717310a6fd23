define f(n) { if (n <= 1) return (1); return (n * f(n - 1)); }
for (k = 0; k < 20; k++) { s = s + f(30) / (k + 1) }
s
scale = 10
x = 1.5
for (i = 0; i < 5; i++) { a[i] = x; x = x * x - i / 3 }
sqrt(a[2]) + x ^ 2
