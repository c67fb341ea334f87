package mcp_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/litterbox-sandbox/litterbox/internal/frontend/mcp"
)

// The end of the input waits for the answers to earlier requests, except those of
// tools: the command of a lost client is ended.
func TestTheEndOfInputWaitsForAnswers(t *testing.T) {
	open := func(lines string) sdk.Connection {
		c, err := mcp.Lines(strings.NewReader(lines), io.Discard).Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	read := func(c sdk.Connection) *jsonrpc.Request {
		message, err := c.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return message.(*jsonrpc.Request)
	}
	ended := func(c sdk.Connection, patience time.Duration) bool {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		_, err := c.Read(ctx)
		return errors.Is(err, io.EOF)
	}
	const list = `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`
	c := open(list + "\n")
	read(c)
	if ended(c, 50*time.Millisecond) {
		t.Error("the input ends before its request is answered")
	}
	c = open(list + "\n")
	asked := read(c)
	over := make(chan bool)
	go func() { over <- ended(c, time.Minute) }()
	if err := c.Write(t.Context(), &jsonrpc.Response{ID: asked.ID, Result: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	if !<-over {
		t.Error("the input does not end after the answer")
	}
	c = open(list + "\n" + `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}` + "\n")
	read(c)
	read(c)
	if !ended(c, time.Minute) {
		t.Error("the input waits for what was canceled")
	}
	c = open(`{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"sandbox-exec","arguments":{}}}` + "\n")
	read(c)
	if !ended(c, time.Minute) {
		t.Error("the input waits for a tool")
	}
}
