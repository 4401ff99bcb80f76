package provider_test

import (
	"context"
	"iter"
	"strings"
	"testing"

	"coder/internal/model/provider"
)

// house serves some models and fails for the others.
type house map[string]error

func (h house) Stream(_ context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		if err := h[req.Model]; err != nil {
			yield(nil, err)
			return
		}
		if yield(provider.TextDelta("from "+req.Model), nil) {
			yield(provider.Done{Stop: provider.StopEnd}, nil)
		}
	}
}

func TestAnotherModelIsTriedWhereOneCannotBeHad(t *testing.T) {
	gone := &provider.Error{Kind: provider.ErrUnknownModel}
	busy := &provider.Error{Kind: provider.ErrOverloaded}
	tests := []struct {
		name   string
		house  house
		models []string
		want   string
	}{
		{"the model itself", house{}, []string{"b"}, "from a"},
		{"the next one", house{"a": gone}, []string{"b", "c"}, "from b"},
		{"the one after", house{"a": gone, "b": busy}, []string{"b", "c"}, "from c"},
		{"never the same twice", house{"a": busy}, []string{"a", "c"}, "from c"},
		{"none", house{"a": gone, "b": gone}, []string{"b"}, "error " + gone.Error()},
		{"a refused key fails everywhere", house{"a": &provider.Error{Kind: provider.ErrAuth}}, []string{"b"}, "error " + (&provider.Error{Kind: provider.ErrAuth}).Error()},
		{"nothing to fall back on", house{"a": gone}, nil, "error " + gone.Error()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var said []string
			reply, err := provider.Collect(provider.Fallback(tt.house, tt.models...).Stream(t.Context(), provider.Request{Model: "a"}), func(d provider.Delta) error {
				if r, ok := d.(provider.Restart); ok {
					said = append(said, r.Err.Error())
				}
				return nil
			})
			got := reply.Message.Text()
			if from := strings.TrimPrefix(got, "from "); err == nil && from != "a" && reply.Model != from {
				t.Errorf("signed %q, from %s", reply.Model, from)
			}
			if err != nil {
				got = "error " + err.Error()
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if tt.want == "from c" && !strings.Contains(strings.Join(said, "\n"), "trying c instead") {
				t.Errorf("said %q", said)
			}
		})
	}
}
