package mcp

import (
	"context"
	"encoding/json"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// listing is the list of tools as it is sent: without the hints that are the
// protocol's defaults, which the SDK writes out for each tool. Many clients show
// the whole list to a model.
type listing struct{ *sdk.ListToolsResult }

// hints are an sdk.ToolAnnotations whose defaults are left out.
type hints struct {
	Destructive *bool `json:"destructiveHint,omitempty"` // default true
	Idempotent  bool  `json:"idempotentHint,omitempty"`
	OpenWorld   *bool `json:"openWorldHint,omitempty"` // default true
	ReadOnly    bool  `json:"readOnlyHint,omitempty"`
}

func (l listing) MarshalJSON() ([]byte, error) {
	type listed struct {
		*sdk.Tool
		Annotations *hints `json:"annotations,omitempty"`
	}
	type result struct {
		*sdk.ListToolsResult
		Tools []listed `json:"tools"`
	}
	short := result{ListToolsResult: l.ListToolsResult, Tools: make([]listed, 0, len(l.Tools))}
	for _, tool := range l.Tools {
		one := listed{Tool: tool}
		if a := tool.Annotations; a != nil {
			one.Annotations = &hints{a.DestructiveHint, a.IdempotentHint, a.OpenWorldHint, a.ReadOnlyHint}
		}
		short.Tools = append(short.Tools, one)
	}
	return json.Marshal(short)
}

// shortened sends the list of tools as a listing.
func shortened(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, request sdk.Request) (sdk.Result, error) {
		result, err := next(ctx, method, request)
		if list, ok := result.(*sdk.ListToolsResult); ok && err == nil {
			return listing{list}, nil
		}
		return result, err
	}
}
