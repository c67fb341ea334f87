package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// callsWord makes this program a client of a model: callsWord ADDRESS measures,
// callsWord ADDRESS once sends one request and ends. Without an address the name
// is looked up.
const callsWord = "calls"

const (
	modelHost = "model.bench.example"
	modelKey  = "BENCH_MODEL_KEY" // the variable, and the secret's name
)

// The measurements of agents.
const (
	whatSecret       = "an HTTPS request into which a secret is put, on a connection that is kept"
	whatCall         = "a call of a model into which a key is put and whose cost is counted"
	whatToken        = "a streamed token of such a call, from the server's write to the client"
	whatInspected    = "one stream into the sandbox that is inspected"
	whatFirstRequest = "agent run, from the typed line to the client's first request"
	whatCheckpoints  = "an agent's command, with commits while it works"
)

// calls is what the client measures.
type calls struct {
	Request, Call, Token time.Duration
	Stream               float64 // bits per second
}

// Paths of the stand-in for a model.
const (
	pathPage   = "/page"
	pathFirst  = "/first"
	pathCall   = "/v1/messages"
	pathVolume = "/volume"
)

// streamed is how many tokens an answer has, and how far apart they are.
const (
	streamed = 200
	apart    = 2 * time.Millisecond
)

// callVolume is the number of bytes moved to measure an inspected stream.
const callVolume = 256 << 20

func runCalls(args []string) error {
	c := modelClient(args[0])
	if len(args) > 1 && args[1] == "once" {
		_, err := c.ask(http.MethodGet, pathFirst, "", io.Discard)
		if err == nil {
			fmt.Println("done")
		}
		return err
	}
	var found calls
	var err error
	if found.Request, err = median(300, func() error { _, err := c.ask(http.MethodGet, pathPage, "", io.Discard); return err }); err != nil {
		return err
	}
	const small = `{"model":"claude-haiku-4-5","max_tokens":10,"messages":[]}`
	if found.Call, err = median(100, func() error { _, err := c.ask(http.MethodPost, pathCall, small, io.Discard); return err }); err != nil {
		return err
	}
	if found.Token, err = c.token(); err != nil {
		return err
	}
	for range 2 {
		start := time.Now()
		n, err := c.ask(http.MethodGet, pathVolume, "", onlyWriter{io.Discard})
		if err != nil {
			return err
		}
		found.Stream = max(found.Stream, float64(n)*8/time.Since(start).Seconds())
	}
	return json.NewEncoder(os.Stdout).Encode(found)
}

// onlyWriter hides everything that io.Copy could use instead of writing.
type onlyWriter struct{ io.Writer }

type model struct{ *http.Client }

// modelClient keeps one connection, as clients of models do.
func modelClient(address string) model {
	return model{&http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // the measurement's own server
		DialContext: func(ctx context.Context, network, to string) (net.Conn, error) {
			if address != "" {
				to = net.JoinHostPort(address, "443")
			}
			var d net.Dialer
			return d.DialContext(ctx, network, to)
		},
	}}}
}

func (m model) send(method, path, body string) (*http.Response, error) {
	request, err := http.NewRequest(method, "https://"+modelHost+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv(modelKey))
	request.Header.Set("Content-Type", "application/json")
	answer, err := m.Do(request)
	if err == nil && answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
		err = join(fmt.Errorf("%s: %s: %s", path, answer.Status, text), answer.Body.Close())
	}
	return answer, err
}

func (m model) ask(method, path, body string, to io.Writer) (int64, error) {
	answer, err := m.send(method, path, body)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(to, answer.Body)
	return n, join(err, answer.Body.Close())
}

// token returns how long a token of a streamed answer takes from the server's
// write to here, by the clock that both share.
func (m model) token() (time.Duration, error) {
	answer, err := m.send(http.MethodPost, pathCall, `{"model":"claude-haiku-4-5","max_tokens":1000,"stream":true,"messages":[]}`)
	if err != nil {
		return 0, err
	}
	var took []time.Duration
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		now := time.Now().UnixNano()
		_, text, found := strings.Cut(lines.Text(), `"text":"`)
		if !found {
			continue
		}
		sent, err := strconv.ParseInt(strings.TrimRight(text, `"}`), 10, 64)
		if err != nil {
			return 0, err
		}
		took = append(took, time.Duration(now-sent))
	}
	if err := join(lines.Err(), answer.Body.Close()); err != nil {
		return 0, err
	}
	if len(took) != streamed {
		return 0, fmt.Errorf("%d of %d tokens came", len(took), streamed)
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}
