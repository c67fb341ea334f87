package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// mergeSettings puts values into a document where they are missing, or always.
func mergeSettings(path string, old []byte, values map[string]any, force bool) ([]byte, error) {
	document, err := parseSettings(path, old)
	if err != nil {
		return nil, err
	}
	mergeInto(document, values, force)
	return writeSettings(path, document)
}

// largestTOML bounds how deep lists nest, which the parser follows on the stack;
// the JSON parser has its own bound.
const largestTOML = 128 << 10

// mostLevels bounds how deep tables nest: each is written with all the names that
// lead to it.
const mostLevels = 50

// deeperThan reports whether a value has more levels than that.
func deeperThan(value any, levels int) bool {
	if levels < 0 {
		return true
	}
	switch value := value.(type) {
	case map[string]any:
		for _, member := range value {
			if deeperThan(member, levels-1) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(value, func(member any) bool { return deeperThan(member, levels-1) })
	}
	return false
}

// parseSettings reads a client's file inside: TOML by its name, else JSON. The
// sandbox may have put anything into it.
func parseSettings(path string, content []byte) (map[string]any, error) {
	document := map[string]any{}
	if len(bytes.TrimSpace(content)) == 0 {
		return document, nil
	}
	if strings.HasSuffix(path, ".toml") {
		if len(content) > largestTOML {
			return nil, fault.New(fault.Invalid, "the document has %d bytes, and at most %d are read", len(content), largestTOML)
		}
		if err := toml.Unmarshal(content, &document); err != nil {
			return nil, err
		}
		if deeperThan(document, mostLevels) {
			return nil, fault.New(fault.Invalid, "the document has more than %d levels", mostLevels)
		}
		return document, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber()
	if err := decoder.Decode(&document); err != nil {
		return nil, err
	}
	if document == nil {
		return nil, fault.New(fault.Invalid, "the document is not an object")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, fault.New(fault.Invalid, "something follows the document")
	}
	return document, nil
}

func writeSettings(path string, document map[string]any) ([]byte, error) {
	if strings.HasSuffix(path, ".toml") {
		return toml.Marshal(wholeNumbers(document))
	}
	content, err := json.MarshalIndent(document, "", "  ")
	return append(content, '\n'), err
}

// wholeNumbers makes integers of whole numbers: TOML knows the difference, and JSON
// does not.
func wholeNumbers(value any) any {
	switch value := value.(type) {
	case map[string]any:
		all := map[string]any{}
		for name, member := range value {
			all[name] = wholeNumbers(member)
		}
		return all
	case []any:
		all := make([]any, len(value))
		for i, member := range value {
			all[i] = wholeNumbers(member)
		}
		return all
	case float64:
		const exact = 1 << 53
		if value == math.Trunc(value) && math.Abs(value) < exact {
			return int64(value)
		}
	}
	return value
}

func mergeInto(document, values map[string]any, force bool) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		value := values[key]
		below, nested := value.(map[string]any)
		there, has := document[key].(map[string]any)
		switch {
		case nested && has:
			mergeInto(there, below, force)
		case document[key] == nil || force:
			document[key] = value
		}
	}
}
