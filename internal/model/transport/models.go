package transport

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"coder/internal/model/provider"
)

// Models asks a list of models for their names. It is asked once: a list is a
// convenience.
func (c *Client) Models(ctx context.Context, u *url.URL, header http.Header) ([]string, error) {
	body, err := c.Get(ctx, u, header)
	if err != nil {
		return nil, err
	}
	names := readModels(body)
	if len(names) == 0 {
		return nil, &provider.Error{Kind: provider.ErrNotAnAPI, Err: fmt.Errorf("%s has no list of models", c.Route(u))}
	}
	return names, nil
}

// readModels reads a list in any of the forms that servers give it: objects
// with an id or a name, bare names, under data or models or alone.
func readModels(body []byte) (names []string) {
	var whole struct{ Data, Models json.RawMessage }
	list := json.RawMessage(body)
	if json.Unmarshal(body, &whole) == nil {
		list = whole.Data
		if list == nil {
			list = whole.Models
		}
	}
	var items []json.RawMessage
	if json.Unmarshal(list, &items) != nil {
		return nil
	}
	for _, item := range items {
		var name string
		var m struct{ ID, Name, Model string }
		if json.Unmarshal(item, &name) != nil && json.Unmarshal(item, &m) == nil {
			name = cmp.Or(m.ID, m.Model, m.Name)
		}
		if name = CleanLine(strings.TrimPrefix(name, "models/")); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
