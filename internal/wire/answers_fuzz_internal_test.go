//go:build unix

package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/service"
)

// said is a guest that has said everything before it is asked.
type said struct {
	io.Reader
}

func (said) Write(p []byte) (int, error) { return len(p), nil }
func (said) Close() error                { return nil }
func (said) CloseWrite() error           { return nil }

// shown fails the test for a text that would move a terminal's cursor, or that
// is unbounded.
func shown(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if len(text) > 4*maxText {
			t.Errorf("a text of %d bytes", len(text))
		}
		if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%q has a control at %d", text, i)
		}
	}
}

// sentence fails the test for an error that is not entirely ours.
func sentence(t *testing.T, err error) {
	t.Helper()
	var known *fault.Error
	if !errors.As(err, &known) || !slices.Contains(fault.Kinds(), known.Kind) {
		t.Errorf("a foreign error: %v", err)
		return
	}
	shown(t, known.Text, known.Hint)
}

// FuzzAnswers lets a guest answer anything to every question: each one ends,
// with an answer that a guest of ours could have given or with an error that can
// be shown.
func FuzzAnswers(f *testing.F) {
	line := func(kind Kind, payload string) string {
		var b bytes.Buffer
		if err := WriteFrame(&b, kind, []byte(payload)); err != nil {
			f.Fatal(err)
		}
		return b.String()
	}
	for _, seed := range []string{
		"", "o", line(KindResult, "{}"), line(KindResult, "null"), line(KindResult, "[]"), line(KindError, "{}"),
		line(KindError, `{"kind":"denied","text":"no \u001b[2J","hint":"\u0007"}`), line(KindError, `{"kind":"x","text":"\ud800"}`),
		line(KindStdout, "out") + line(KindStderr, "err") + line(KindResult, `{"code":3,"signal":"\u001b]0;x","background":[{"pid":-1,"command":"\u001b[1m"}]}`),
		line(KindResult, `{"code":-1}`), line(KindResult, `{"code":256}`), line(KindResult, `{"code":1,"duration_ns":-1}`), line(KindResult, `{"kept_bytes":-1}`),
		line(KindCredit, "\xff\xff\xff\xff") + line(KindCredit, "x") + line(KindResult, `{"code":0}`),
		line(KindResult, `{"commit":"0123456789012345678901234567890123456789","branch":"refs/heads/x"}`),
		line(KindResult, `{"commit":"--all"}`), line(KindResult, `{"branch":"refs/\u001b[2J"}`), line(KindResult, `{"branch":"main"}`),
		line(KindResult, `{"services":[{"name":"web","state":"running","problem":"\u001b[2J","last":{"signal":"\u0000"}}]}`),
		line(KindResult, `{"services":[{"name":"../x","state":"running"}]}`), line(KindResult, `{"services":[{"name":"web","state":"x"}]}`),
		line(KindStdout, `[{"service":"other","text":"\u001b[2J","next":-1}]`) + line(KindResult, `{"next":9,"more":true}`),
		line(KindStdout, `{"name":"web","state":"exited"}`) + line(KindResult, "{}"),
		line(KindStdout, `{"path":"YQ==","text":"`+"x\u009b") + line(KindStdout, "\"}\n{}\n") + line(KindResult, `{"files":1,"stopped":"\u001bc"}`),
		line(KindResult, `{"files":-1}`), line(KindResult, `{"size":-1}`),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		ctx := context.Background()
		guest := func() Stream { return said{bytes.NewReader(stream)} }
		check := func(err error, texts ...string) {
			t.Helper()
			if err != nil {
				sentence(t, err)
				return
			}
			shown(t, texts...)
		}
		var out, complaints bytes.Buffer
		exit, err := Run(ctx, guest(), Exec{Argv: [][]byte{[]byte("x")}}, Streams{Stdout: &out, Stderr: &complaints})
		texts := []string{exit.Signal, exit.Output, exit.Kept}
		for _, p := range exit.Background {
			texts = append(texts, p.Command)
		}
		if check(err, texts...); exit.Code < 0 || exit.Code > 255 || exit.Duration < 0 || exit.KeptBytes < 0 || out.Len()+complaints.Len() > len(stream) {
			t.Errorf("the end %+v, %d bytes of output", exit, out.Len()+complaints.Len())
		}

		list, err := Processes(ctx, guest())
		texts = nil
		for _, p := range list {
			texts = append(texts, p.Command)
		}
		check(err, texts...)

		head, err := FindHead(ctx, guest())
		if check(err, head.Branch); head.Commit != "" && !IsObjectID(head.Commit) || head.Branch != "" && !strings.HasPrefix(head.Branch, "refs/") {
			t.Errorf("HEAD is %+v", head)
		}
		module, err := FindModule(ctx, guest(), "sub")
		if check(err, module.Head.Branch); module.Head.Commit != "" && !IsObjectID(module.Head.Commit) {
			t.Errorf("a submodule's HEAD is %+v", module.Head)
		}

		services, err := Services(ctx, guest(), ServiceOrder{Action: service.WishStart})
		check(err)
		reported := func(one service.Status) {
			t.Helper()
			if !service.ValidName(one.Name) || !slices.Contains(service.States(), one.State) {
				t.Errorf("a service %+v", one)
			}
			shown(t, one.Problem)
			if one.Last != nil {
				shown(t, one.Last.Signal)
			}
		}
		for _, one := range services {
			reported(one)
		}
		check(WatchServices(ctx, guest(), reported))
		_, err = Logs(ctx, guest(), LogQuery{Service: "web"}, func(line LogLine) error {
			if line.Service != "web" {
				t.Errorf("a line of %q", line.Service)
			}
			return nil
		})
		check(err)

		const limit = 3
		matches, found, err := SearchFiles(ctx, guest(), FindRequest{Limit: limit})
		texts = []string{found.Stopped}
		for _, one := range matches {
			texts = append(texts, one.Text)
		}
		if check(err, texts...); len(matches) > limit || err == nil && (found.Files < 0 || found.Skipped < 0) {
			t.Errorf("%d matches, %+v", len(matches), found)
		}
		view, err := ShowFile(ctx, guest(), ShowRequest{Path: []byte("x")}, io.Discard)
		if check(err); view.Size < 0 || view.Offset < 0 {
			t.Errorf("a view %+v", view)
		}
		check(Ask(ctx, guest(), Request{Op: OpHello}))
	})
}

// FuzzEgress lets a guest send any frame about the network. A frame that is
// understood means the same when it is sent again; descriptors have a test of
// their own.
func FuzzEgress(f *testing.F) {
	d := Datagram{Process: "dig (7)", Payload: []byte("payload")}
	for _, seed := range []struct {
		kind    Kind
		payload string
	}{
		{KindQuery, "12345678\x01message"}, {KindQuery, "12345678"}, {KindAnswer, "12345678message"}, {KindAnswer, "1234567"},
		{KindDatagram, strings.Repeat("\x00", 36)}, {KindDatagram, strings.Repeat("\x00", 36) + "\x00"},
		{KindDatagram, strings.Repeat("\x00", 36) + "\x05four"}, {KindDatagram, strings.Repeat("\x01", 36) + "\x04four" + string(d.Payload)},
		{KindDatagram, strings.Repeat("\x00", 10) + "\xff\xff\x7f\x00\x00\x01\x00\x35" + strings.Repeat("\xfe", 18) + "\x00x"},
		{KindUnreachable, strings.Repeat("\x02", 36)}, {KindUnreachable, "short"}, {KindConnection, `{"destination":"1.2.3.4:5"}`}, {'?', ""},
	} {
		f.Add(byte(seed.kind), []byte(seed.payload))
	}
	f.Fuzz(func(t *testing.T, kind byte, payload []byte) {
		got, err := (&Egress{}).parse(Kind(kind), payload)
		if err != nil {
			sentence(t, err)
			return
		}
		again := payload
		switch got.Kind {
		case KindQuery, KindAnswer:
			if len(got.Query.Message) >= len(payload) || !bytes.HasSuffix(payload, got.Query.Message) {
				t.Errorf("%q was understood as %+v", payload, got.Query)
			}
		case KindDatagram:
			d := got.Datagram
			again = appendEndpoint(appendEndpoint(nil, d.Source), d.Destination)
			again = append(append(append(again, byte(len(d.Process))), d.Process...), d.Payload...)
		case KindUnreachable:
			again = appendEndpoint(appendEndpoint(nil, got.Datagram.Source), got.Datagram.Destination)
		default:
			t.Errorf("kind %q was understood without a descriptor", string(rune(kind)))
		}
		if !bytes.HasPrefix(payload, again) || got.Kind == KindDatagram && len(again) != len(payload) {
			t.Errorf("%q was understood as %q", payload, again)
		}
		if _, err := json.Marshal(got.Connection); err != nil {
			t.Error(err)
		}
	})
}
