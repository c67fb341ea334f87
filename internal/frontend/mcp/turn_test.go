package mcp_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/frontend/mcp"
)

func TestTurn(t *testing.T) {
	var turn mcp.Turn
	give, err := turn.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var order []int
	var all sync.WaitGroup
	canceled, cancel := context.WithCancel(t.Context())
	for i := range 20 {
		ctx := t.Context()
		if i == 7 {
			ctx = canceled
		}
		before := turn.Waiting()
		all.Go(func() {
			give, err := turn.Take(ctx)
			if err != nil {
				if i != 7 || fault.KindOf(err) != fault.Canceled {
					t.Error(i, err)
				}
				return
			}
			defer give()
			mu.Lock()
			defer mu.Unlock()
			order = append(order, i)
		})
		for turn.Waiting() == before {
		}
	}
	cancel()
	for turn.Waiting() == 20 {
	}
	give()
	all.Wait()
	want := slices.DeleteFunc([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}, func(i int) bool { return i == 7 })
	if diff := cmp.Diff(want, order); diff != "" {
		t.Error(diff)
	}
}

// A call that waits for a command lets readers pass, but not those that came
// after a call that changes something.
func TestTurnIsLent(t *testing.T) {
	var turn mcp.Turn
	give, err := turn.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var early sync.WaitGroup
	early.Go(func() { // comes before the turn is lent
		leave, err := turn.TakeToRead(t.Context())
		if err != nil {
			t.Error(err)
			return
		}
		leave()
	})
	for turn.Waiting() == 0 {
	}
	back := turn.Lend()
	early.Wait()
	leave, err := turn.TakeToRead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	leave()

	var late sync.WaitGroup
	order := make(chan string, 2)
	late.Go(func() {
		give, err := turn.Take(t.Context())
		if err != nil {
			t.Error(err)
			return
		}
		order <- "writer"
		give()
	})
	for turn.Waiting() == 0 {
	}
	late.Go(func() {
		give, err := turn.TakeToRead(t.Context())
		if err != nil {
			t.Error(err)
			return
		}
		order <- "reader"
		give()
	})
	for turn.Waiting() != 2 {
	}
	back()
	give()
	late.Wait()
	if first, second := <-order, <-order; first != "writer" || second != "reader" {
		t.Errorf("the %s passed before the %s", first, second)
	}
}

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST": true, "127.0.0.1": true, "127.1.2.3": true, "::1": true, "::ffff:127.0.0.1": true,
		"": false, "0.0.0.0": false, "::": false, "192.168.1.1": false, "localhost.": false, "localhost.example.com": false,
		"127.0.0.1.example.com": false, "2130706433": false, "0x7f000001": false, "127.1": false, "example.com": false, "::1%lo": true,
	} {
		if got := mcp.Loopback(host); got != want {
			t.Errorf("%q: %t", host, got)
		}
	}
}
