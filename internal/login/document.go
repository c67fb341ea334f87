package login

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Parse reads a client's file. Numbers stay as they are written. Its errors
// show nothing of the content.
func Parse(content []byte) (map[string]any, error) {
	document := map[string]any{}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber()
	if err := decoder.Decode(&document); err != nil || document == nil {
		return nil, fault.New(fault.Invalid, "it is not a JSON object")
	}
	return document, nil
}

// lookup finds a value; nil where there is none.
func lookup(document map[string]any, path []string) any {
	var value any = document
	for _, name := range path {
		object, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = object[name]
	}
	return value
}

// put sets a value, and makes the objects on the way to it.
func put(document map[string]any, path []string, value any) {
	for _, name := range path[:len(path)-1] {
		below, ok := document[name].(map[string]any)
		if !ok {
			below = map[string]any{}
			document[name] = below
		}
		document = below
	}
	document[path[len(path)-1]] = value
}

// at puts an object below a path of its own.
func at(path []string, object map[string]any) map[string]any {
	for n := len(path) - 1; n >= 0; n-- {
		object = map[string]any{path[n]: object}
	}
	return object
}

func number(value any) (int64, bool) {
	switch n := value.(type) {
	case json.Number:
		whole, err := n.Int64()
		if err != nil {
			float, err := n.Float64()
			return int64(float), err == nil && float > -1e15 && float < 1e15
		}
		return whole, true
	case int64:
		return n, true
	}
	return 0, false
}

// claimedEnd is when a JSON web token ends by its own claim; zero for anything
// else. Its signature is not checked.
func claimedEnd(token string) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}
	}
	document, err := Parse(claims)
	if err != nil {
		return time.Time{}
	}
	if seconds, ok := number(document["exp"]); ok {
		return time.Unix(seconds, 0)
	}
	return time.Time{}
}
