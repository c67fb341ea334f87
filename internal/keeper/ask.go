package keeper

import (
	"context"
	"encoding/json"
	"net"
	"slices"
	"strconv"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// OpAsk makes this client the one to ask about destinations that no rule allows:
// KindStarted (Empty), then questions as KindStdout frames with [Question],
// answered by KindStdin frames with [Answer], until the client goes.
const OpAsk wire.Op = "keeper.ask"

// Question is put to a client.
type Question struct {
	ID uint64 `json:"id"`
	egress.Question
	// Signature is the subject of the question in place of a destination.
	// [AllowOnce] allows it, every other answer refuses it.
	Signature *Signature `json:"signature,omitempty"`
	// More counts the other ports and protocols of the same host that wait too:
	// a refusal covers them all. Waiting counts the questions after this one.
	More    int `json:"more,omitempty"`
	Waiting int `json:"waiting,omitempty"`
}

// Answer is what a client says to a question.
type Answer struct {
	ID     uint64 `json:"id"`
	Answer string `json:"answer"`
}

// The answers; anything else is [RefuseAsked]. A decision that outlives the client is a revision of the
// policy, which the client has made before it answers.
const (
	AllowOnce   = "once"   // while the client lives
	DecideAnew  = "decide" // there is a new revision
	RefuseAsked = "refuse" // and do not ask again while the client lives
	RefuseAll   = "all"    // everything that waits or comes while the client lives
)

// Bounds on what a sandbox can make wait for a client.
const (
	maxQuestions = 256
	maxAwaited   = 512 // names that get an address because a human is there
)

// askers are the clients that want to be asked, the newest last. The newest is
// asked: it cannot be told for sure whose command makes an attempt, and
// everything inside may use what is allowed inside.
type askers struct {
	mu   sync.Mutex
	list []*asker
	// changed is called, without the lock, when what is allowed once changes.
	changed func()
}

// asker is one client.
type asker struct {
	conn    net.Conn
	gone    chan struct{}
	next    uint64
	asked   map[string]*asked // by the rule that would allow it
	awaited map[string]bool
	once    []egress.Rule

	standing *asked   // the question that the client has
	queue    []*asked // those after it, in the order in which they came
	silent   bool     // the client wants no more of them
}

// asked is a question and its answer, which is there when answered is closed.
type asked struct {
	question Question
	answered chan struct{}
	anew     bool
	group    []*asked // those refused with it
}

// serve lets a client answer until it goes. Then everything that waits for it
// is refused, and what it allowed once is allowed no more.
func (a *askers) serve(conn net.Conn) {
	one := &asker{conn: conn, gone: make(chan struct{}), asked: map[string]*asked{}, awaited: map[string]bool{}}
	if wire.WriteJSON(conn, wire.KindStarted, wire.Empty{}) != nil {
		return
	}
	a.mu.Lock()
	a.list = append(a.list, one)
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		a.list = slices.DeleteFunc(a.list, func(other *asker) bool { return other == one })
		granted := len(one.once) > 0
		a.mu.Unlock()
		if granted {
			a.changed()
		}
		close(one.gone) // last: once refused, a caller finds nothing allowed
	}()
	for frames := wire.NewReader(conn); ; {
		kind, payload, err := frames.Next()
		if err != nil {
			return
		}
		var answer Answer
		if kind == wire.KindStdin && json.Unmarshal(payload, &answer) == nil {
			a.answer(one, answer)
		}
	}
}

func (a *askers) answer(one *asker, answer Answer) {
	a.mu.Lock()
	found := one.standing
	if found == nil || found.question.ID != answer.ID {
		a.mu.Unlock()
		return
	}
	one.standing = nil
	found.anew = answer.Answer == AllowOnce || answer.Answer == DecideAnew
	signature := found.question.Signature != nil
	if signature {
		delete(one.asked, signatureKey(found.question.Signature)) // each is asked about
	}
	over := []*asked{found}
	granted := false
	switch answer.Answer {
	case AllowOnce:
		if signature {
			break
		}
		if rule, err := egress.ParseRule(found.question.Rule); err == nil {
			rule.From = "once"
			one.once = append(one.once, rule)
			granted = true
		}
	case DecideAnew:
		// A rule that is taken back later may be asked about again.
		delete(one.asked, found.question.Rule)
	case RefuseAll:
		one.silent = true
		over = append(over, one.queue...)
	default:
		over = append(over, found.group...)
	}
	one.queue = slices.DeleteFunc(one.queue, func(waiting *asked) bool { return slices.Contains(over, waiting) })
	a.mu.Unlock()
	if granted {
		a.changed()
	}
	for _, done := range over {
		close(done.answered)
	}
	a.put(one)
}

// put gives the client its next question, when it has none. A client that
// cannot be reached is gone, which shows elsewhere.
func (a *askers) put(one *asker) {
	a.mu.Lock()
	if one.standing != nil || len(one.queue) == 0 {
		a.mu.Unlock()
		return
	}
	next := one.queue[0]
	one.standing, one.queue = next, one.queue[1:]
	next.group = nil
	for _, other := range one.queue {
		if next.question.Signature != nil || other.question.Signature != nil {
			continue // of no host
		}
		if other.question.Host == next.question.Host && other.question.Addr == next.question.Addr {
			next.group = append(next.group, other)
		}
	}
	next.question.More, next.question.Waiting = len(next.group), len(one.queue)-len(next.group)
	question := next.question
	a.mu.Unlock()
	_ = wire.WriteJSON(one.conn, wire.KindStdout, question)
}

// ask implements egress.Options.Ask.
func (a *askers) ask(ctx context.Context, q egress.Question) bool {
	a.mu.Lock()
	if len(a.list) == 0 {
		a.mu.Unlock()
		return false
	}
	one := a.list[len(a.list)-1]
	waiting, known := one.asked[q.Rule]
	if !known {
		if one.silent || len(one.asked) >= maxQuestions {
			a.mu.Unlock()
			return false
		}
		one.next++
		waiting = &asked{question: Question{ID: one.next, Question: q}, answered: make(chan struct{})}
		one.asked[q.Rule] = waiting
		one.queue = append(one.queue, waiting)
	}
	a.mu.Unlock()
	a.put(one)
	select {
	case <-waiting.answered:
		return waiting.anew
	case <-one.gone:
	case <-ctx.Done():
	}
	return false
}

func signatureKey(s *Signature) string { return "signature " + strconv.Itoa(s.ID) }

// sign asks the newest client about a signature. answered is false if there is
// no client, or it goes before it answers.
func (a *askers) sign(ctx context.Context, s Signature) (answered, allowed bool) {
	a.mu.Lock()
	if len(a.list) == 0 {
		a.mu.Unlock()
		return false, false
	}
	one := a.list[len(a.list)-1]
	if one.silent {
		a.mu.Unlock()
		return true, false
	}
	if len(one.asked) >= maxQuestions {
		a.mu.Unlock()
		return false, false
	}
	one.next++
	waiting := &asked{question: Question{ID: one.next, Signature: &s}, answered: make(chan struct{})}
	one.asked[signatureKey(&s)] = waiting
	one.queue = append(one.queue, waiting)
	a.mu.Unlock()
	a.put(one)
	select {
	case <-waiting.answered:
		return true, waiting.anew
	case <-one.gone:
	case <-ctx.Done():
		// Answered another way. A question already put stays.
		a.mu.Lock()
		delete(one.asked, signatureKey(&s))
		one.queue = slices.DeleteFunc(one.queue, func(other *asked) bool { return other == waiting })
		a.mu.Unlock()
	}
	return false, false
}

// await implements egress.Resolver.Await.
func (a *askers) await(host string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.list) == 0 {
		return false
	}
	one := a.list[len(a.list)-1]
	if one.silent || !one.awaited[host] && len(one.awaited) >= maxAwaited {
		return false
	}
	one.awaited[host] = true
	return true
}

// granted is what clients have allowed for as long as they live.
func (a *askers) granted() []egress.Rule {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []egress.Rule
	for _, one := range a.list {
		all = append(all, one.once...)
	}
	return all
}
