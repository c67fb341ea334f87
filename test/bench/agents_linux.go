package main

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/network/world"
)

// agents measures what comes between an agent inside and its model, how soon
// the agent is ready, and the cost of commits while it works.
func (b *bench) agents() error { return b.again("agents") }

// provider stands in for a model. It answers only to the key that never comes
// inside, so that every measured request was inspected.
type provider struct {
	key   string
	first chan time.Time // when each client's first request came
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	came := time.Now()
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Header.Get("Authorization") != "Bearer "+p.key {
		http.Error(w, "not with this key", http.StatusUnauthorized)
		return
	}
	switch r.URL.Path {
	case pathFirst:
		p.first <- came
		_, _ = io.WriteString(w, "first\n")
	case pathPage:
		_, _ = io.WriteString(w, "a small page\n")
	case pathVolume:
		data := make([]byte, 256<<10)
		for range callVolume / len(data) {
			if _, err := w.Write(data); err != nil {
				return
			}
		}
	case pathCall:
		p.call(w, strings.Contains(string(body), `"stream":true`))
	}
}

// call answers as Anthropic's API does; each token is the time when it is sent.
func (p *provider) call(w http.ResponseWriter, stream bool) {
	const usage = `"usage":{"input_tokens":1,"output_tokens":1}`
	if !stream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"type":"message","model":"claude-haiku-4-5","content":[],`+usage+`}`)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(name, data string) {
		_, _ = fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q,%s}\n\n", name, name, data)
		_ = http.NewResponseController(w).Flush()
	}
	event("message_start", `"message":{"type":"message","model":"claude-haiku-4-5",`+usage+`}`)
	for range streamed {
		time.Sleep(apart)
		event("content_block_delta", fmt.Sprintf(`"index":0,"delta":{"type":"text_delta","text":"%d"}`, time.Now().UnixNano()))
	}
	event("message_delta", `"delta":{"stop_reason":"end_turn"},`+usage)
	event("message_stop", `"end":true`)
}

// steadyWork is what an agent's command does for some seconds: it writes files
// and reads them again, with pauses for commits, and a change after the last
// one for the commit at its end.
const steadyWork = `round=0
while [ $round -lt ROUNDS ]; do
	round=$((round+1)); mkdir -p work/$round; n=0
	while [ $n -lt 50 ]; do n=$((n+1)); seq 1 500 >work/$round/$n.txt; done
	cat work/$round/*.txt | sha256sum >work/$round/sum
	[ $((round % 20)) -ne 0 ] || sleep PAUSE
done
seq 1 500 >work/end.txt
echo done
`

// agentsIn measures agents, in their world.
func (b *bench) agentsIn(w *world.World) (err error) {
	site := &provider{key: "value-" + strings.Repeat("k9", 16), first: make(chan time.Time, 1)}
	host := w.Host(modelHost)
	if err := site.serve(w, host); err != nil {
		return err
	}
	repo, program := filepath.Join(b.dir, "agents"), filepath.Join(b.dir, "programs", "client")
	rounds, pause := 60, 4
	if b.small {
		rounds, pause = 20, 8 // the first commit comes after five seconds, and there is only one pause
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	config := fmt.Sprintf(`[mounts]
read-only = [%q]
[cost]
meter = true
hosts = [%q]
[secrets.%s]
from = "env:%s"
hosts = [%q]
[agents.first]
command = [%q, %q, "", "once"]
allow = [%q]
[agents.works]
command = ["sh", "-c", %q]
`, filepath.Dir(program), modelHost, modelKey, modelKey, modelHost, program, callsWord, modelHost, strings.NewReplacer("ROUNDS", fmt.Sprint(rounds), "PAUSE", fmt.Sprint(pause)).Replace(steadyWork))
	err = errors.Join(os.Chmod(b.dir, 0o755), os.MkdirAll(filepath.Dir(program), 0o755), os.Mkdir(repo, 0o755), os.WriteFile(program, self, 0o755),
		os.MkdirAll(filepath.Join(b.dir, "config", "litterbox"), 0o755), os.WriteFile(filepath.Join(b.dir, "config", "litterbox", "config.toml"), []byte(config), 0o600), b.fill(repo, 100))
	if err != nil {
		return err
	}
	b.env = append(b.env, "SSL_CERT_FILE="+w.CA, modelKey+"="+site.key)
	litterbox := func(args ...string) error { return b.command(repo, append([]string{b.litterbox}, args...)...) }
	if err := litterbox("create", "box"); err != nil {
		return err
	}
	defer func() { err = join(err, b.deleteIn(repo)) }()
	if err := litterbox("allow", "box", modelHost); err != nil {
		return err
	}
	if err := b.inspected(repo, program, host.V4.String()); err != nil {
		return err
	}
	if err := b.firstRequests(repo, program, host.V4.String(), site); err != nil {
		return err
	}
	return b.checkpoints(repo)
}

func (b *bench) deleteIn(repo string) error {
	return b.command(repo, b.litterbox, "delete", "--force", "--all")
}

func (p *provider) serve(w *world.World, host *world.Host) error {
	certificate, err := w.Certificate(host.Name)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: p, ReadHeaderTimeout: time.Minute, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}}
	for _, listener := range host.Listen(&bed{}, 443) {
		go func() { _ = server.ServeTLS(listener, "", "") }()
	}
	return nil
}

// inspected measures requests with a secret put in and their cost counted, in
// turns with the same requests without litterbox.
func (b *bench) inspected(repo, program, address string) error {
	inside := []string{b.litterbox, "exec", "box", "--no-commit", "--", program, callsWord, ""}
	var best [2]calls
	for range 3 {
		for n, argv := range [][]string{inside, {program, callsWord, address}} {
			text, err := b.output(repo, argv...)
			if err != nil {
				return err
			}
			var found calls
			lines := strings.Split(strings.TrimSpace(text), "\n")
			if err := json.Unmarshal([]byte(lines[len(lines)-1]), &found); err != nil {
				return fmt.Errorf("%w: %s", err, text)
			}
			if best[n].Request == 0 {
				best[n] = found
				continue
			}
			best[n] = calls{min(best[n].Request, found.Request), min(best[n].Call, found.Call), min(best[n].Token, found.Token), max(best[n].Stream, found.Stream)}
		}
	}
	b.timed(whatSecret, "", once(best[0].Request), direct, once(best[1].Request))
	b.timed(whatCall, "", once(best[0].Call), direct, once(best[1].Call))
	b.timed(whatToken, "", once(best[0].Token), direct, once(best[1].Token))
	b.report.add(row{What: whatInspected, Here: measure{Value: best[0].Stream / 1e9, Unit: gigabits}, Beside: direct, There: measure{Value: best[1].Stream / 1e9, Unit: gigabits}})
	return nil
}

// firstRequests measures from the typed line to the client's first request.
func (b *bench) firstRequests(repo, program, address string, site *provider) error {
	var took [3][]time.Duration
	for i := range b.rounds {
		name := fmt.Sprintf("new-%d", i)
		for n, argv := range [][]string{
			{b.litterbox, "agent", "run", "first", "Ask", "--name", name},
			{b.litterbox, "agent", "run", "first", "Ask", "--in", "box"},
			{program, callsWord, address, "once"},
		} {
			typed := time.Now()
			if _, err := b.output(repo, argv...); err != nil {
				return err
			}
			select {
			case came := <-site.first:
				took[n] = append(took[n], came.Sub(typed))
			default:
				return fmt.Errorf("%q: no request came", argv)
			}
		}
		if err := b.command(repo, b.litterbox, "delete", "--force", name); err != nil {
			return err
		}
	}
	outside := timingOf(took[2])
	b.timed(whatFirstRequest, "in a new sandbox", timingOf(took[0]), "the client outside", outside)
	b.timed(whatFirstRequest, "in one that runs", timingOf(took[1]), "the client outside", outside)
	return nil
}

// checkpoints measures how long an agent's command takes with and without
// commits while it works.
func (b *bench) checkpoints(repo string) error {
	commits := 0
	run := func(name string, flags ...string) step {
		return func(i int) error {
			name := fmt.Sprintf("%s-%d", name, i)
			text, err := b.output(repo, append([]string{b.litterbox, "agent", "run", "works", "Work", "--name", name, "--json"}, flags...)...)
			if err != nil {
				return err
			}
			var ended struct{ Run struct{ Commits int } }
			lines := strings.Split(strings.TrimSpace(text), "\n")
			for _, line := range lines {
				if strings.HasPrefix(line, `{"kind":"ended"`) {
					if err := json.Unmarshal([]byte(line), &ended); err != nil {
						return err
					}
				}
			}
			if len(flags) > 1 {
				commits = max(commits, ended.Run.Commits)
			}
			return nil
		}
	}
	// Made before they are timed: only the work counts.
	rounds := min(b.rounds, 5)
	for i := range rounds {
		for _, name := range []string{"with", "without"} {
			if err := b.command(repo, b.litterbox, "create", fmt.Sprintf("%s-%d", name, i)); err != nil {
				return err
			}
		}
	}
	with, without, err := b.alternately(rounds, run("with", "--checkpoint", "1s"), run("without", "--no-checkpoints"))
	if err != nil {
		return err
	}
	if commits < 2 {
		b.report.missing("%s: none was made in the pauses of the command, so busy was the machine", whatCheckpoints)
		return nil
	}
	b.timed(whatCheckpoints, fmt.Sprintf("%d commits", commits), with, "without them", without)
	return nil
}
