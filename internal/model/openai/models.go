package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"coder/internal/model/provider"
)

// mostOfList is how much of a list of models is read.
const mostOfList = 16 << 20

// Models asks the endpoint which models it has, by name. It is asked once: a
// list is a convenience.
func (c *Client) Models(ctx context.Context) ([]string, error) {
	names, err := c.models(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return names, c.hide(err)
}

func (c *Client) models(ctx context.Context) ([]string, error) {
	h, err := c.http()
	if err != nil {
		return nil, &provider.Error{Kind: provider.ErrBadRequest, Err: err}
	}
	req, err := c.listRequest(ctx)
	if err != nil {
		return nil, &provider.Error{Kind: provider.ErrBadRequest, Err: err}
	}
	resp, err := h.Do(req)
	if err != nil {
		return nil, c.route(req).unanswered(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, mostOfList))
	if err != nil {
		return nil, &provider.Error{Kind: provider.ErrCutOff, Err: err}
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, classify(resp.StatusCode, readFault(body))
	}
	names := readModels(body)
	if len(names) == 0 {
		return nil, &provider.Error{Kind: provider.ErrNotAnAPI, Err: fmt.Errorf("%s has no list of models", c.route(req))}
	}
	return names, nil
}

// listRequest asks for the list, which stands beside the completions.
func (c *Client) listRequest(ctx context.Context) (*http.Request, error) {
	u, err := endpoint(c.opt.BaseURL)
	if err != nil {
		return nil, err
	}
	u.Path = strings.TrimSuffix(u.Path, "/chat/completions") + "/models"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	if c.opt.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+c.opt.APIKey)
	}
	if c.opt.UserAgent != "" {
		req.Header.Set("User-Agent", c.opt.UserAgent)
	}
	for name, v := range c.opt.Headers {
		req.Header.Set(name, v)
	}
	return req, nil
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
		if name := modelName(item); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func modelName(item json.RawMessage) string {
	var (
		bare string
		m    struct{ ID, Name, Model string }
	)
	if json.Unmarshal(item, &bare) == nil {
		return cleanLine(bare)
	}
	if json.Unmarshal(item, &m) != nil {
		return ""
	}
	for _, name := range []string{m.ID, m.Model, m.Name} {
		if name != "" {
			return cleanLine(name)
		}
	}
	return ""
}
