package keeper

import (
	"encoding/json"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// asking is a client of askers.
type asking struct {
	t      *testing.T
	a      *askers
	client net.Conn
	frames *wire.Reader
}

func newAsking(t *testing.T) *asking {
	t.Helper()
	client, server := net.Pipe()
	c := &asking{t: t, a: &askers{changed: func() {}}, client: client, frames: wire.NewReader(client)}
	if err := client.SetDeadline(time.Now().Add(time.Minute)); err != nil { // a hang is a failure
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		c.a.serve(server)
	}()
	t.Cleanup(func() {
		_ = client.Close()
		_ = server.Close()
		<-over
	})
	if kind, _, err := c.frames.Next(); err != nil || kind != wire.KindStarted {
		t.Fatalf("%v, %v", kind, err)
	}
	return c
}

// tries begins an attempt, and waits until it is known.
func (c *asking) tries(host string, port int) <-chan bool {
	c.t.Helper()
	result := make(chan bool, 1)
	known := func() int {
		c.a.mu.Lock()
		defer c.a.mu.Unlock()
		if len(c.a.list) == 0 {
			return -1
		}
		return len(c.a.list[0].asked)
	}
	for known() < 0 {
		time.Sleep(time.Millisecond)
	}
	before := known()
	go func() {
		result <- c.a.ask(c.t.Context(), egress.Question{Host: host, Port: uint16(port), Protocol: egress.TCP, Rule: host + ":" + strconv.Itoa(port)})
	}()
	for deadline := time.Now().Add(time.Minute); known() == before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatal("the attempt is not known")
		}
	}
	return result
}

// known waits until the client is one of those asked.
func (c *asking) known() {
	first := c.tries("a.example", 1)
	c.answers(c.question(), AllowOnce)
	<-first
}

func (c *asking) question() Question {
	c.t.Helper()
	var q Question
	_, payload, err := c.frames.Next()
	if err == nil {
		err = json.Unmarshal(payload, &q)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return q
}

func (c *asking) answers(q Question, answer string) {
	c.t.Helper()
	if err := wire.WriteJSON(c.client, wire.KindStdin, Answer{ID: q.ID, Answer: answer}); err != nil {
		c.t.Fatal(err)
	}
}

// Questions about one host that wait behind another are asked together, and a
// refusal refuses all that was shown.
func TestQuestionsOfOneHost(t *testing.T) {
	c := newAsking(t)
	first := c.tries("a.example", 1)
	q := c.question()
	var ports []<-chan bool
	for port := 2; port <= 9; port++ {
		ports = append(ports, c.tries("a.example", port))
	}
	other := c.tries("b.example", 1)
	type brief struct {
		Rule          string
		More, Waiting int
	}
	short := func(q Question) brief { return brief{q.Rule, q.More, q.Waiting} }
	got := []brief{short(q)}
	c.answers(q, AllowOnce)
	if !<-first {
		t.Error("what was allowed is refused")
	}
	q = c.question()
	got = append(got, short(q))
	c.answers(q, RefuseAsked)
	for _, port := range ports {
		if <-port {
			t.Error("what was refused is allowed")
		}
	}
	q = c.question()
	got = append(got, short(q))
	c.answers(q, DecideAnew)
	if !<-other {
		t.Error("what is decided anew is refused")
	}
	if diff := cmp.Diff([]brief{{"a.example:1", 0, 0}, {"a.example:2", 7, 1}, {"b.example:1", 0, 0}}, got); diff != "" {
		t.Errorf("questions (-want +got):\n%s", diff)
	}
}

// One answer ends them all, those to come included.
func TestNoMoreQuestions(t *testing.T) {
	c := newAsking(t)
	attempts := []<-chan bool{c.tries("a.example", 1)}
	q := c.question()
	for port := range 20 {
		attempts = append(attempts, c.tries("h"+strconv.Itoa(port)+".example", 1))
	}
	c.answers(q, RefuseAll)
	for _, attempt := range attempts {
		if <-attempt {
			t.Error("it was allowed")
		}
	}
	if c.a.ask(t.Context(), egress.Question{Host: "late.example", Port: 1, Rule: "late.example:1"}) || c.a.await("late.example") {
		t.Error("what came later waits or is allowed")
	}
}

// Each signature is a question of its own, regardless of earlier answers, until
// the client wants no more of them.
func TestQuestionsAboutSignatures(t *testing.T) {
	c := newAsking(t)
	type answer struct{ answered, allowed bool }
	begin := func(id int) <-chan answer {
		result := make(chan answer, 1)
		go func() {
			answered, allowed := c.a.sign(t.Context(), Signature{ID: id, Purpose: "log in"})
			result <- answer{answered, allowed}
		}()
		return result
	}
	c.known()
	for id, given := range map[int]answer{1: {true, true}, 2: {true, false}} {
		result := begin(id)
		q := c.question()
		if q.Signature == nil || q.Signature.ID != id || q.Rule != "" {
			t.Fatalf("asked %+v", q)
		}
		c.answers(q, map[bool]string{true: AllowOnce, false: RefuseAsked}[given.allowed])
		if got := <-result; got != given {
			t.Errorf("%d: %+v", id, got)
		}
	}
	if rules := c.a.granted(); len(rules) > 1 {
		t.Errorf("a signature has become the rules %v", rules)
	}
	result := begin(3)
	c.answers(c.question(), RefuseAll)
	if got, next := <-result, <-begin(4); got.allowed || next != (answer{true, false}) {
		t.Errorf("no more of them: %+v, then %+v", got, next)
	}
}

// A client that goes answers nothing: another way to answer is left.
func TestASignatureOutlivesItsClient(t *testing.T) {
	c := newAsking(t)
	result := make(chan bool, 1)
	c.known()
	go func() {
		answered, _ := c.a.sign(t.Context(), Signature{ID: 1})
		result <- answered
	}()
	if q := c.question(); q.Signature == nil {
		t.Fatalf("asked %+v", q)
	}
	if err := c.client.Close(); err != nil {
		t.Fatal(err)
	}
	if <-result {
		t.Error("a client that has gone has answered")
	}
}
