package egress_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/egress/inject"
	"github.com/litterbox-sandbox/litterbox/internal/secret"
)

func TestSecretsArePutIn(t *testing.T) {
	for _, upstream := range []bool{false, true} {
		for _, protocol := range []string{"1", "2"} {
			t.Run(fmt.Sprintf("HTTP/%s, HTTP/2 to the host: %t", protocol, upstream), func(t *testing.T) {
				w := newWithSecrets(t, "example.com", "www.example.com")
				var last atomic.Pointer[http.Request]
				var lastBody atomic.Pointer[string]
				s := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					text := string(body)
					lastBody.Store(&text)
					last.Store(r)
					r.Body = io.NopCloser(bytes.NewReader(body))
					tellBack(rw, r)
				}))
				s.EnableHTTP2 = upstream
				s.StartTLS()
				t.Cleanup(s.Close)
				w.place(internet+":443", s.Listener.Addr())
				c := w.browser(s, protocol)

				_, text := send(t, c, newRequest(t, "POST", "https://example.com/a?k="+w.key+"&z="+w.key, `{"key":"`+w.key+`"}`, "X-Key", "Bearer "+w.key, "Content-Type", "application/json"))
				got := last.Load()
				if got.Header.Get("X-Key") != "Bearer "+theValue || got.URL.RawQuery != "k="+theValue+"&z="+theValue || *lastBody.Load() != `{"key":"`+theValue+`"}` {
					t.Errorf("the host was told %q, %q, %q", got.Header, got.URL.RawQuery, *lastBody.Load())
				}
				if got.ContentLength != int64(len(*lastBody.Load())) {
					t.Errorf("the length of the body is said to be %d", got.ContentLength)
				}
				wantNone(t, "the echo", text, theValue)
				if strings.Count(text, w.key) < 8 {
					t.Errorf("the echo has the placeholder %d times: %q", strings.Count(text, w.key), text)
				}

				r := newRequest(t, "GET", "https://example.com/", "")
				r.SetBasicAuth("me", w.key)
				_, text = send(t, c, r)
				if _, password, _ := last.Load().BasicAuth(); password != theValue {
					t.Errorf("the password is %q", password)
				}
				wantNone(t, "the echo of a password", text, theValue)

				// A value with all that needs an encoding, of another length than its placeholder's in each.
				_, text = send(t, c, newRequest(t, "POST", "https://www.example.com/b", "a="+w.db+"&b=2", "X-Db", w.db, "Content-Type", "application/x-www-form-urlencoded"))
				if got := last.Load(); got.Header.Get("X-Db") != theOther || *lastBody.Load() != "a="+url.QueryEscape(theOther)+"&b=2" || got.ContentLength != int64(len(*lastBody.Load())) {
					t.Errorf("the host was told %q, %q", got.Header, *lastBody.Load())
				}
				wantNone(t, "the echo of the other", text, theOther)

				// Where it is not named, a placeholder stays one.
				_, _ = send(t, c, newRequest(t, "GET", "https://www.example.com/"+w.db+"?q="+w.db, ""))
				if got := last.Load(); got.URL.RequestURI() != "/"+w.db+"?q="+w.db {
					t.Errorf("the host was asked for %q", got.URL.RequestURI())
				}
				if n := w.fetched.Load(); n != 1 {
					t.Errorf("the value was fetched %d times for a burst of requests", n)
				}
			})
		}
	}
}

func TestSecretsStayWithTheirHosts(t *testing.T) {
	w := newWithSecrets(t, "example.com", "www.example.com", "http://plain.example.com", "GET,POST https://other.example.com/")
	var err error
	var told atomic.Int64
	count := func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/body" { // the beginning is sent on; what follows is unknown
			told.Add(1)
		}
		_, _ = io.Copy(io.Discard, r.Body)
	}
	s := w.web(internet+":443", true, count)
	plain := w.web(internet+":80", false, count)
	inBase64 := base64.StdEncoding.EncodeToString([]byte("x:" + w.key))
	for name, r := range map[string]*http.Request{
		"a header":                   newRequest(t, "GET", "https://www.example.com/", "", "Authorization", "Bearer "+w.key),
		"a query":                    newRequest(t, "GET", "https://www.example.com/?a="+w.key, ""),
		"a path":                     newRequest(t, "GET", "https://www.example.com/"+w.key+"/x", ""),
		"an escaped path":            newRequest(t, "GET", "https://www.example.com/"+strings.ReplaceAll(w.key, "-", "%2D"), ""),
		"a body":                     newRequest(t, "POST", "https://www.example.com/body", strings.Repeat("x", 100<<10)+w.key),
		"Basic":                      newRequest(t, "GET", "https://www.example.com/", "", "Authorization", "Basic "+inBase64),
		"a body in Base64":           newRequest(t, "POST", "https://www.example.com/body", base64.StdEncoding.EncodeToString([]byte("ab"+w.key+"cd"))),
		"without TLS":                newRequest(t, "GET", "http://plain.example.com/", "", "X", w.key),
		"a body without TLS":         newRequest(t, "POST", "http://plain.example.com/body", "a "+w.key),
		"a host that is looked into": newRequest(t, "GET", "https://other.example.com/", "", "X", w.key),
		"another's":                  newRequest(t, "GET", "https://example.com/", "", "X", w.db),
	} {
		for _, protocol := range []string{"1", "2"} {
			c := w.browser(s, protocol)
			if r.URL.Scheme == "http" {
				c = w.browser(plain, "1")
			}
			if r.Body, err = r.GetBody(); err != nil {
				t.Fatal(err)
			}
			code, text := send(t, c, r)
			if code != 403 || !strings.Contains(text, "it sends the placeholder of the secret") || !strings.Contains(text, "which is not a host of that secret") {
				t.Errorf("%s over HTTP/%s: %d %q", name, protocol, code, text)
			}
		}
	}
	if n := told.Load(); n > 0 {
		t.Errorf("%d requests reached the servers", n)
	}
	denied := 0
	for _, o := range w.seen.Snapshot() {
		if o.Verdict == egress.Denied && strings.Contains(o.Why, "which is not a host of that secret") {
			denied++
		}
	}
	if denied < 6 { // rows: each path of a host
		t.Errorf("only %d rows say so", denied)
	}
	if n := w.fetched.Load(); n > 1 {
		t.Errorf("a value was fetched %d times", n)
	}
}

func TestSecretsInAnswers(t *testing.T) {
	w := newWithSecrets(t, "example.com")
	s := w.web(internet+":443", true, func(rw http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("X-Key")
		switch r.URL.Path {
		case "/gzip":
			rw.Header().Set("Content-Encoding", "gzip")
			gz := gzip.NewWriter(rw)
			fmt.Fprintf(gz, "%s asked for %q", key, r.Header.Get("Accept-Encoding"))
			_ = gz.Close()
		case "/br":
			rw.Header().Set("Content-Encoding", "br")
			fmt.Fprint(rw, key)
		case "/range":
			http.ServeContent(rw, r, "x.txt", s2014, strings.NewReader("it is "+key))
		case "/part":
			rw.Header().Set("Content-Range", "bytes 0-9/100")
			rw.WriteHeader(http.StatusPartialContent)
			fmt.Fprint(rw, key[:10])
		case "/hints":
			rw.Header().Set("Link", "<"+key+">")
			rw.WriteHeader(http.StatusEarlyHints)
			rw.Header().Del("Link")
			fmt.Fprint(rw, "hinted")
		case "/redirect":
			http.Redirect(rw, r, "https://www.example.com/"+key, http.StatusFound)
		case "/name":
			rw.Header().Set("X-"+key, "1")
		}
	})
	c := w.browser(s, "2")
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for path, want := range map[string]string{
		"/gzip": w.key + ` asked for "identity"`, "/br": "a secret may be in it", "/range": "it is " + w.key, "/part": "a secret may be in it",
		"/hints": "hinted", "/redirect": "https://www.example.com/" + w.key, "/name": strings.ToUpper(w.key[:2]),
	} {
		_, text := send(t, c, newRequest(t, "GET", "https://example.com"+path, "", "X-Key", w.key, "Range", "bytes=0-9"))
		if wantNone(t, path, text, theValue); !strings.Contains(strings.ToLower(text), strings.ToLower(want)) {
			t.Errorf("%s: %q, want %q in it", path, text, want)
		}
	}
	// A refusal says why.
	wantWhy(t, w.why(egress.Denied), "a secret may be in it")
}

// A host whose answer is not HTTP is quoted in an error.
func TestSecretsInErrors(t *testing.T) {
	w := newWithSecrets(t, "http://plain.example.com:8080")
	w.serve(internet+":8080", func(conn *net.TCPConn) {
		head, err := http.ReadRequest(bufio.NewReader(conn))
		if err == nil {
			fmt.Fprintf(conn, "HTTP/1.1 %s\r\n\r\n", head.Header.Get("X-Key"))
		}
	})
	conn := w.openName("plain.example.com", 8080)
	fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: plain.example.com:8080\r\nX-Key: %s\r\nConnection: close\r\n\r\n", w.key)
	text, _ := io.ReadAll(conn)
	if wantNone(t, "the error", string(text), theValue); !strings.Contains(string(text), w.key) {
		t.Errorf("%q", text)
	}
	for _, o := range w.seen.Snapshot() {
		wantNone(t, "an observation", o.Why, theValue)
	}
}

// A source without a value refuses, because nothing could be searched.
func TestSecretWithoutItsSource(t *testing.T) {
	set := secret.NewSet()
	host, err := secret.ParseHost("example.com")
	if err != nil {
		t.Fatal(err)
	}
	set.Bind(secret.Binding{Spec: secret.Spec{Name: "KEY", Hosts: []secret.Host{host}, In: []secret.Place{secret.Header}}, Placeholder: "abcdefghijkl"},
		func(context.Context) ([]byte, error) { return nil, errors.New("the keyring is locked") })
	w := newInspected(t, hooked(inject.New(set)), "example.com")
	s := w.web(internet+":443", true, w.record)
	if got := get(t, w.browser(s, "2"), "GET", "https://example.com/", ""); got.status != 403 || !strings.Contains(got.body, "cannot read the secret KEY: the keyring is locked") {
		t.Errorf("%+v", got)
	}
	if len(w.requests()) != 0 {
		t.Error("it was sent all the same")
	}
}

// A changed value counts once the last use is some seconds ago, and at once
// after the host refused it.
func TestSecretIsRotated(t *testing.T) {
	w := newWithSecrets(t, "example.com")
	s := w.web(internet+":443", true, func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") != *w.value.Load() {
			rw.WriteHeader(http.StatusUnauthorized)
		}
		fmt.Fprint(rw, r.Header.Get("X-Key"))
	})
	c := w.browser(s, "2")
	status := func() int {
		code, text := send(t, c, newRequest(t, "GET", "https://example.com/", "", "X-Key", w.key))
		if wantNone(t, "the answer", text, theValue, *w.value.Load()); !strings.Contains(text, w.key) {
			t.Errorf("%q", text)
		}
		return code
	}
	first := status()
	rotated := strings.ToUpper(theValue) + "and longer"
	w.value.Store(&rotated)
	if second, third := status(), status(); first != 200 || second != 401 || third != 200 {
		t.Errorf("%d, after the change %d, then %d", first, second, third)
	}
}

// A stream is passed on as it comes, in both directions.
func TestSecretsDoNotHoldStreamsBack(t *testing.T) {
	w := newWithSecrets(t, "example.com")
	s := w.web(internet+":443", true, func(rw http.ResponseWriter, r *http.Request) {
		flush := http.NewResponseController(rw)
		_ = flush.EnableFullDuplex()
		lines := bufio.NewScanner(r.Body)
		for lines.Scan() {
			fmt.Fprintf(rw, "data: %s %s\n\n", lines.Text(), r.Header.Get("X-Key"))
			_ = flush.Flush()
		}
	})
	for _, protocol := range []string{"1", "2"} {
		reader, writer := io.Pipe()
		r := newRequest(t, "POST", "https://example.com/", "", "X-Key", w.key)
		r.Body, r.ContentLength = reader, -1
		answer := make(chan *http.Response, 1)
		go func() {
			response, err := w.browser(s, protocol).Do(r)
			if err != nil {
				t.Error(err)
			}
			answer <- response
		}()
		fmt.Fprintf(writer, "%s\n", w.key)
		response := <-answer
		if response == nil {
			return
		}
		lines := bufio.NewReader(response.Body)
		for range 3 {
			line, err := lines.ReadString('\n')
			if blank, _ := lines.ReadString('\n'); err != nil || blank != "\n" || line != "data: "+w.key+" "+w.key+"\n" {
				t.Fatalf("HTTP/%s: %q (%v)", protocol, line, err)
			}
			fmt.Fprintf(writer, "%s\n", w.key)
		}
		writer.Close()
		response.Body.Close()
	}
}

// s2014 is when a file that servers give was changed.
var s2014 = time.Date(2014, 1, 1, 0, 0, 0, 0, time.UTC)
