package transport

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"coder/internal/model/provider"
)

// keyPlaceholder is the placeholder in a header for a key that is fetched on sending.
const keyPlaceholder = "{key}"

// usedKeys are the fetched keys, so that none is shown.
type usedKeys struct {
	mu   sync.Mutex // guards the field below
	used []string
}

func (k *usedKeys) record(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(key) >= minSecretLen && !slices.Contains(k.used, key) {
		k.used = append(k.used, key)
	}
}

func (k *usedKeys) all() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.used)
}

// withKey sends r with the current key. A refused key may have expired: withKey then tries another, once.
func (c *Client) withKey(ctx context.Context, r Request, send func(Request) error) error {
	if c.opt.FreshKey == nil {
		return send(r)
	}
	refused := ""
	for {
		key, err := c.opt.FreshKey(ctx, refused)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return &provider.Error{Kind: provider.ErrAuth, Err: err}
		}
		c.keyLog.record(key)
		signed := r
		signed.Header = r.Header.Clone()
		for name, values := range signed.Header {
			for i := range values {
				signed.Header[name][i] = strings.ReplaceAll(values[i], keyPlaceholder, key)
			}
		}
		err = send(signed)
		e, ok := errors.AsType[*provider.Error](err)
		if !ok || e.Status != http.StatusUnauthorized || refused != "" || key == "" {
			return err
		}
		refused = key
	}
}

// withQuery returns u with the user's parameters for every address.
func (c *Client) withQuery(u *url.URL) *url.URL {
	if len(c.opt.Query) == 0 {
		return u
	}
	q := u.Query()
	for name, v := range c.opt.Query {
		q.Set(name, v)
	}
	with := *u
	with.RawQuery = q.Encode()
	return &with
}
