package checkpoint

import (
	"context"
	"errors"
	"testing"
)

// TestEarn: what has been earned may be spent again, and no more than had been spent.
func TestEarn(t *testing.T) {
	b := NewBudget(context.Background(), 1000)
	if err := b.Spend(workShare*1000, "all"); err != nil {
		t.Fatal(err)
	}
	b.Earn(-5)
	b.Earn(10)
	if err := b.Spend(10, "what was earned"); err != nil {
		t.Fatal(err)
	}
	var limit *LimitError
	if err := b.Spend(1, "more"); !errors.As(err, &limit) || !limit.Work {
		t.Fatalf("more than was earned: %v", err)
	}
	b.Earn(1 << 40)
	if err := b.Spend(workShare*1000+1, "more than all"); !errors.As(err, &limit) {
		t.Fatalf("more than there ever was: %v", err)
	}
	(*Budget)(nil).Earn(1)
}
