package guest_test

import (
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/service"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// sh makes a service from a shell script.
func sh(name, script string, change ...func(*service.Spec)) service.Spec {
	spec := service.Spec{Name: name, Command: []string{"sh", "-c", script}, Grace: 20 * time.Second}
	for _, c := range change {
		c(&spec)
	}
	return spec
}

func needs(names ...string) func(*service.Spec) {
	return func(s *service.Spec) { s.Needs = names }
}

func grace(d time.Duration) func(*service.Spec) {
	return func(s *service.Spec) { s.Grace = d }
}

func policy(r service.Restart) func(*service.Spec) {
	return func(s *service.Spec) { s.Restart = r }
}

// configure sets the services; only the named ones are wanted.
func (b *box) configure(specs []service.Spec, wanted ...string) {
	b.t.Helper()
	s := b.open()
	defer s.Close()
	if err := wire.Set(limit(b.t), s, wire.Configure{Services: specs, Wanted: wanted, Env: []string{"PORT_WEB=4321"}}); err != nil {
		b.t.Fatal(err)
	}
}

// wish carries out a wish and waits for the result.
func (b *box) wish(action service.Wish, names ...string) []service.Status {
	b.t.Helper()
	s := b.open()
	defer s.Close()
	list, err := wire.Services(limit(b.t), s, wire.ServiceOrder{Action: action, Names: names, Wait: true})
	if err != nil {
		b.t.Fatalf("%s %q: %v", action, names, err)
	}
	return list
}

func (b *box) status(name string) service.Status {
	b.t.Helper()
	s := b.open()
	defer s.Close()
	list, err := wire.Services(limit(b.t), s, wire.ServiceOrder{Action: service.WishStatus, Names: []string{name}})
	if err != nil || len(list) != 1 {
		b.t.Fatalf("status of %s: %+v, %v", name, list, err)
	}
	return list[0]
}

// states is "name=state …".
func states(list []service.Status) string {
	var words []string
	for _, s := range list {
		words = append(words, s.Name+"="+string(s.State))
	}
	return strings.Join(words, " ")
}

// logs returns the text of a service's whole journal.
func (b *box) logs(name string) string {
	b.t.Helper()
	s := b.open()
	defer s.Close()
	var text strings.Builder
	_, err := wire.Logs(limit(b.t), s, wire.LogQuery{Service: name}, func(line wire.LogLine) error {
		mark := ""
		if line.Own {
			mark = "* "
		}
		text.WriteString(mark + line.Text + "\n")
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return text.String()
}

// processes counts the processes whose command line begins with a text.
func (b *box) processes(text string) int {
	b.t.Helper()
	out := b.sh(`for f in /proc/[0-9]*/cmdline; do { tr '\0' ' ' <$f; echo; } 2>/dev/null || true; done`)
	count := 0
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, text) {
			count++
		}
	}
	return count
}
