package x86

import (
	"math"
	"math/big"
	"sync"
)

// Elementary functions to about 170 bits of relative precision, for the
// transcendental instructions: enough that rounding once to 64 bits gives the
// correctly rounded result in all but hopeless cases. They are slow (tens of
// microseconds) and deterministic on every host.

const (
	bigPrec    = 192 // bits that computations carry
	bigPrecPi  = 448 // bits of pi: 64 of an integer quotient, and cancellation
	bigEpsilon = 180 // a series stops where a term is that many bits below the sum
)

// bigConst holds pi and ln 2, computed at first use.
var bigConst struct {
	once    sync.Once
	pi, ln2 *big.Float
}

func newBig() *big.Float { return new(big.Float).SetPrec(bigPrec) }

func bigInt(n int64) *big.Float { return newBig().SetInt64(n) }

// bigPi and bigLn2 return the constants, which must not be changed.
func bigPi() *big.Float {
	bigInit()
	return bigConst.pi
}

func bigLn2() *big.Float {
	bigInit()
	return bigConst.ln2
}

// bigInit computes pi = 16 atan(1/5) - 4 atan(1/239) (Machin) and
// ln 2 = 18 atanh(1/26) - 2 atanh(1/4801) + 8 atanh(1/8749), in fixed point.
func bigInit() {
	bigConst.once.Do(func() {
		const prec = bigPrecPi + 32
		term := func(k, n int64, sign int64) *big.Int { // k * 2^prec * atan(1/n), or atanh with sign 1
			sum := new(big.Int)
			p := new(big.Int).Lsh(big.NewInt(k), prec)
			p.Quo(p, big.NewInt(n))
			n2 := big.NewInt(n * n)
			for i, s := int64(1), int64(1); p.Sign() != 0; i, s = i+2, s*sign {
				t := new(big.Int).Quo(p, big.NewInt(i*s))
				sum.Add(sum, t)
				p.Quo(p, n2)
			}
			return sum
		}
		fixed := func(terms ...*big.Int) *big.Float {
			sum := new(big.Int)
			for _, t := range terms {
				sum.Add(sum, t)
			}
			f := new(big.Float).SetPrec(bigPrecPi).SetInt(sum)
			return f.SetMantExp(f, -prec)
		}
		bigConst.pi = fixed(term(16, 5, -1), new(big.Int).Neg(term(4, 239, -1)))
		bigConst.ln2 = fixed(term(18, 26, 1), new(big.Int).Neg(term(2, 4801, 1)), term(8, 8749, 1))
	})
}

// big returns a finite number exactly.
func (a F80) big() *big.Float {
	v := newBig()
	if a.M == 0 {
		return v
	}
	v.SetUint64(a.M)
	v.SetMantExp(v, max(int(a.exp()), 1)-f80Bias-63)
	if a.sign() != 0 {
		v.Neg(v)
	}
	return v
}

// packBig rounds v, which is not zero, to 64 bits whatever the precision
// control says. inexact: the true result is not v but near it.
func (c *fctx) packBig(v *big.Float, inexact bool) F80 {
	var sign uint16
	if v.Signbit() {
		sign = 0x8000
	}
	m := newBig()
	exp := v.MantExp(m)
	n, acc := m.SetMantExp(m.Abs(m), 128).Int(nil)
	lo := n.Uint64()
	hi := n.Rsh(n, 64).Uint64()
	if inexact || acc != big.Exact {
		lo |= 1
	}
	return c.packTo(sign, int32(exp-1+f80Bias), hi, lo, 64)
}

// bigSmall says that a term no longer matters to sum.
func bigSmall(term, sum *big.Float) bool {
	return term.Sign() == 0 || sum.Sign() != 0 && term.MantExp(nil) < sum.MantExp(nil)-bigEpsilon
}

// bigNudge moves v by 2^-180 of itself towards zero (down) or away from it:
// for results so near to v that no term of their series shows.
func bigNudge(v *big.Float, down bool) *big.Float {
	d := newBig().SetMantExp(v, -180)
	if down {
		d.Neg(d)
	}
	return v.Add(v, d)
}

// bigExpm1 returns e^t - 1 for |t| < 1: the series of t/2^8, then eight times
// e^2t - 1 = (e^t - 1)(e^t - 1 + 2).
func bigExpm1(t *big.Float) *big.Float {
	const halvings = 8
	x := newBig().SetMantExp(t, -halvings)
	sum, term := newBig().Set(x), newBig().Set(x)
	for i := 2; ; i++ {
		term.Mul(term, x)
		term.Mul(term, bigReciprocal(i))
		if bigSmall(term, sum) {
			break
		}
		sum.Add(sum, term)
	}
	two := bigInt(2)
	for range halvings {
		sum.Mul(sum, newBig().Add(sum, two))
	}
	return sum
}

// bigOdd sums z + s*z^3/3 + z^5/5 + s*z^7/7 ...: atan(z) for s = -1, atanh(z)
// for s = 1.
func bigOdd(z *big.Float, s int64) *big.Float {
	z2 := newBig().Mul(z, z)
	if s < 0 {
		z2.Neg(z2)
	}
	sum, power := newBig().Set(z), newBig().Set(z)
	for i := 3; ; i += 2 {
		power.Mul(power, z2)
		term := newBig().Mul(power, bigReciprocal(i))
		if bigSmall(term, sum) {
			if i == 3 && term.Sign() != 0 {
				bigNudge(sum, s < 0)
			}
			return sum
		}
		sum.Add(sum, term)
	}
}

// bigLog2 returns log2(1+d) where x = 1+d > 0 is given as well.
func bigLog2(x, d *big.Float) *big.Float {
	m := newBig()
	k := x.MantExp(m) // m in [1/2, 1)
	if m.Cmp(big.NewFloat(0.70710678)) < 0 {
		m.SetMantExp(m, 1)
		k--
	}
	num := newBig().Sub(m, bigInt(1))
	if k == 0 {
		num.Set(d) // exact however small
	}
	f, _ := num.Float64()
	r := bigLnNear(m, num, int(math.Round(f*logSteps)))
	r.Quo(r, bigLn2())
	return r.Add(r, bigInt(int64(k)))
}

// bigLnNear returns ln m = ln t + 2 atanh((m-t)/(m+t)), t = 1 + step/logSteps,
// where m is near t and d = m-1. Step 0 loses nothing near 1.
func bigLnNear(m, d *big.Float, step int) *big.Float {
	t := newBig().SetMantExp(bigInt(logSteps+int64(step)), -logStepBits)
	num := newBig().Sub(m, t)
	if step == 0 {
		num.Set(d)
	}
	r := newBig()
	if num.Sign() != 0 {
		r = bigOdd(num.Quo(num, newBig().Add(m, t)), 1)
		r.SetMantExp(r, 1)
	}
	if step != 0 {
		r.Add(r, bigLnStep(step))
	}
	return r
}

const (
	logStepBits = 5
	logSteps    = 1 << logStepBits
)

// bigReciprocals holds 1/i, made at first use.
var bigReciprocals = sync.OnceValue(func() *[128]*big.Float {
	var t [128]*big.Float
	for i := 1; i < len(t); i++ {
		t[i] = newBig().Quo(bigInt(1), bigInt(int64(i)))
	}
	return &t
})

// bigLogs holds ln(1 + step/logSteps) for steps from -logSteps/2, made at
// first use.
var bigLogs = sync.OnceValue(func() *[logSteps]*big.Float {
	var t [logSteps]*big.Float
	for i := range t {
		num, sum := bigInt(int64(i-logSteps/2)), bigInt(int64(i-logSteps/2)+2*logSteps)
		if num.Sign() == 0 {
			continue // step 0, which bigLnNear does not ask for
		}
		r := bigOdd(num.Quo(num, sum), 1)
		t[i] = r.SetMantExp(r, 1)
	}
	return &t
})

// bigReciprocal returns 1/i, which must not be changed.
func bigReciprocal(i int) *big.Float {
	if t := bigReciprocals(); i < len(t) {
		return t[i]
	}
	return newBig().Quo(bigInt(1), bigInt(int64(i)))
}

// bigLnStep returns ln(1 + step/logSteps), which must not be changed.
func bigLnStep(step int) *big.Float { return bigLogs()[step+logSteps/2] }

// bigAtan returns atan(q) for q > 0.
func bigAtan(q *big.Float) *big.Float {
	one := bigInt(1)
	if q.Cmp(one) > 0 {
		r := bigAtan(newBig().Quo(one, q))
		half := newBig().SetMantExp(newBig().Set(bigPi()), -1)
		return half.Sub(half, r)
	}
	const halvings = 4
	z := newBig().Set(q)
	n := 0
	for ; n < halvings && z.MantExp(nil) > -60; n++ { // z / (1 + sqrt(1 + z^2))
		s := newBig().Mul(z, z)
		s.Sqrt(s.Add(s, one))
		z.Quo(z, s.Add(s, one))
	}
	r := bigOdd(z, -1)
	return r.SetMantExp(r, n)
}

// bigReduce returns x - quadrant*pi/2 in [-pi/4, pi/4] and the quadrant modulo
// 4, for |x| < 2^64.
func bigReduce(x, pi *big.Float) (r *big.Float, quadrant int) {
	half := new(big.Float).SetPrec(bigPrecPi).SetMantExp(pi, -1)
	q := new(big.Float).SetPrec(bigPrecPi).Quo(x, half)
	h := big.NewFloat(0.5)
	if q.Signbit() {
		h.Neg(h)
	}
	n, _ := q.Add(q, h).Int(nil) // chopped: rounds to nearest
	p := new(big.Float).SetPrec(bigPrecPi + 64).SetInt(n)
	p.Mul(p, half)
	d := new(big.Float).SetPrec(bigPrecPi+64).Sub(x, p)
	return newBig().Set(d), int(new(big.Int).And(n, big.NewInt(3)).Int64())
}

// bigSinCos returns sine and cosine of |x| <= 1: the series.
func bigSinCos(x *big.Float) (sin, cos *big.Float) {
	x2 := newBig().Mul(x, x)
	x2.Neg(x2)
	series := func(first *big.Float, i int) *big.Float {
		sum, term := newBig().Set(first), newBig().Set(first)
		for ; ; i += 2 {
			term.Mul(term, x2)
			term.Mul(term, bigReciprocal(i))
			term.Mul(term, bigReciprocal(i+1))
			if bigSmall(term, sum) {
				if i <= 2 && term.Sign() != 0 {
					bigNudge(sum, true)
				}
				return sum
			}
			sum.Add(sum, term)
		}
	}
	return series(x, 2), series(bigInt(1), 1)
}
