package mcp

import (
	"bytes"
	"encoding/json"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// ids keeps the form of request ids. The protocol's library reads numbers as
// float64 and gives them back as integers: 1.0 would be answered as 1, and of large
// ones the last digits would change. Such an id goes through the library as a
// stand-in text, and the answer gets the client's own spelling.
type ids struct {
	mu   sync.Mutex
	next int
	kept map[string]json.RawMessage // by stand-in text
}

// disguised begins every stand-in text; no client's id has a NUL.
const disguised = "\x00id"

// maxDisguised bounds the ids that are kept: a call that is canceled is never
// answered.
const maxDisguised = 4096

// exact reports whether the library gives an id back as it came.
func exact(raw json.RawMessage) bool {
	if len(raw) == 0 || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return true // no number
	}
	const most = 1 << 53 // up to which float64 is exact
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return err == nil && n < most && n > -most && strconv.FormatInt(n, 10) == string(raw)
}

// in gives the message in the form that the library reads.
func (i *ids) in(line []byte) []byte {
	var head struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			RequestID json.RawMessage `json:"requestId"`
		} `json:"params"`
	}
	// Params may be of any kind: those that do not fit are not about a request.
	_ = json.Unmarshal(line, &head)
	canceled := head.Method == "notifications/cancelled" && !exact(head.Params.RequestID)
	if head.Method == "" || exact(head.ID) && !canceled {
		return line
	}
	var message map[string]json.RawMessage
	if json.Unmarshal(line, &message) != nil {
		return line
	}
	if canceled {
		var params map[string]json.RawMessage
		if json.Unmarshal(message["params"], &params) != nil {
			return line
		}
		params["requestId"] = i.text(head.Params.RequestID, false)
		message["params"] = encoded(params)
	}
	if !exact(head.ID) {
		message["id"] = i.text(head.ID, true)
	}
	return encoded(message)
}

// text is the stand-in for an id; a new request gets a new one.
func (i *ids) text(raw json.RawMessage, made bool) json.RawMessage {
	i.mu.Lock()
	defer i.mu.Unlock()
	for text, known := range i.kept {
		if bytes.Equal(known, raw) {
			return encoded(text)
		}
	}
	if len(i.kept) >= maxDisguised {
		return raw
	}
	i.next++
	text := disguised + strconv.Itoa(i.next)
	if made {
		if i.kept == nil {
			i.kept = map[string]json.RawMessage{}
		}
		i.kept[text] = bytes.Clone(raw)
	}
	return encoded(text)
}

// out is the line for a message from the library, with the client's id.
func (i *ids) out(message jsonrpc.Message) ([]byte, error) {
	line, err := jsonrpc.EncodeMessage(message)
	response, ok := message.(*jsonrpc.Response)
	if err != nil || !ok {
		return line, err
	}
	text, _ := response.ID.Raw().(string)
	i.mu.Lock()
	raw, ok := i.kept[text]
	delete(i.kept, text)
	i.mu.Unlock()
	if !ok {
		return line, nil
	}
	var answer map[string]json.RawMessage
	if err := json.Unmarshal(line, &answer); err != nil {
		return nil, err
	}
	answer["id"] = raw
	return encoded(answer), nil
}

// encoded is the JSON of a value that always has one.
func encoded(value any) json.RawMessage {
	data, err := json.Marshal(value)
	if err != nil {
		return json.RawMessage("null")
	}
	return data
}
