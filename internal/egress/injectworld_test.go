package egress_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/egress/inject"
	"github.com/litterbox-sandbox/litterbox/internal/secret"
)

const (
	theValue = "sk-ant-api03-Zm9vYmFyYmF6cXV4MDEyMzQ1Njc4OWFiY2RlZmdoaWprbG1ub3A"
	theOther = `p"a\ss/w+o=r&d öf 12`
)

// withSecrets is a world with secrets: KEY for example.com in all places, DB
// for www.example.com in headers.
type withSecrets struct {
	*inspected
	key, db string // placeholders
	fetched atomic.Int64
	value   atomic.Pointer[string]
}

func newWithSecrets(t testing.TB, allow ...string) *withSecrets {
	t.Helper()
	w := &withSecrets{}
	value := theValue
	w.value.Store(&value)
	set := secret.NewSet()
	bind := func(name, value string, in []secret.Place, fetch secret.Fetch, hosts ...string) string {
		made, err := secret.Placeholder([]byte(value))
		if err != nil {
			t.Fatal(err)
		}
		spec := secret.Spec{Name: name, In: in}
		for _, text := range hosts {
			host, err := secret.ParseHost(text)
			if err != nil {
				t.Fatal(err)
			}
			spec.Hosts = append(spec.Hosts, host)
		}
		set.Bind(secret.Binding{Spec: spec, Placeholder: made}, fetch)
		return made
	}
	w.key = bind("KEY", theValue, secret.Places(), func(context.Context) ([]byte, error) {
		w.fetched.Add(1)
		return []byte(*w.value.Load() + "\n"), nil
	}, "example.com", "http://plain.example.com:8080")
	w.db = bind("DB", theOther, []secret.Place{secret.Header, secret.Body}, func(context.Context) ([]byte, error) { return []byte(theOther), nil }, "www.example.com")
	w.inspected = newInspected(t, hooked(inject.New(set)), allow...)
	for _, host := range []string{"www.example.com", "plain.example.com", "other.example.com"} {
		w.host(host, internet)
	}
	return w
}

// send sends a request and gives what came back, head included.
func send(t testing.TB, c *http.Client, r *http.Request) (int, string) {
	t.Helper()
	response, err := c.Do(r.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Errorf("of %s came %q and %v", r.URL, body, err)
	}
	var all strings.Builder
	_ = response.Header.Write(&all)
	all.Write(body)
	_ = response.Trailer.Write(&all)
	return response.StatusCode, all.String()
}

func newRequest(t testing.TB, method, url, body string, header ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(header); n += 2 {
		r.Header.Set(header[n], header[n+1])
	}
	return r
}

// forms returns the ways in which text appears in answers.
func forms(text string) []string {
	encoded := base64.StdEncoding.EncodeToString([]byte(text))
	return []string{text, url.QueryEscape(text), url.PathEscape(text), hex.EncodeToString([]byte(text)), encoded[:len(encoded)/4*4-4]}
}

func wantNone(t testing.TB, what, text string, values ...string) {
	t.Helper()
	for _, value := range values {
		for _, form := range forms(value) {
			if strings.Contains(text, form) {
				t.Errorf("%s has the value: %q", what, text)
			}
		}
	}
}

// tellBack answers with all that it was sent, in several forms and in pieces.
func tellBack(rw http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	user, password, _ := r.BasicAuth()
	var head strings.Builder
	_ = r.Header.Write(&head)
	told := fmt.Sprintf("%s\n%s\nuser=%s:%s\nbody=%s\ntrailer=%v\n", r.URL.RequestURI(), head.String(), user, password, body, r.Trailer)
	rw.Header().Set("X-Echo", strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, told))
	rw.Header().Set("Trailer", "X-End")
	flush := http.NewResponseController(rw)
	for _, text := range append(forms(told), base64.StdEncoding.EncodeToString([]byte(told))) {
		for rest := text + "\n"; rest != ""; {
			n := min(len(rest), 7)
			_, _ = io.WriteString(rw, rest[:n])
			_ = flush.Flush()
			rest = rest[n:]
		}
	}
	rw.Header().Set("X-End", "end "+r.Header.Get("X-Key"))
}
