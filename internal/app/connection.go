package app

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"coder/internal/config"
	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/core/sanitize"
	"coder/internal/core/secret"
	"coder/internal/core/uip"
	"coder/internal/host/repofile"
)

// keyCommandTimeout limits how long a command may take to print the key.
const keyCommandTimeout = 30 * time.Second

// Keys gets the keys of endpoints from commands and from coder's store, and keeps keys off the screen and the disk.
type Keys struct {
	*Site
	newConcealer func() *secret.Concealer // for everything shown and saved

	mu    sync.Mutex        // guards known, and runs one key command at a time
	known map[string]string // while coder runs
}

// MaskQuestion returns a question as recorded.
func (a *Keys) MaskQuestion(q uip.Request) uip.Request {
	kept := event.Mask(event.InteractionRequested{Request: q}, a.newConcealer()).(event.InteractionRequested).Request
	kept.Args = q.Args
	return kept
}

// MaskAnswer returns an answer with its keys masked.
func (a *Keys) MaskAnswer(answer uip.Response) uip.Response {
	return event.Mask(event.InteractionResponded{Response: answer}, a.newConcealer()).(event.InteractionResponded).Response
}

// keyReader returns a function that gets the key from the user's key command
// or from coder setup's store, or nil if there is neither. It runs the
// command when the key is first needed, and again if the key is rejected.
func (a *Keys) keyReader(c config.Provider) func(context.Context, string) (string, error) {
	switch {
	case c.APIKey != "":
		return nil
	case len(c.APIKeyCommand) == 0 && c.KeyStore != "":
		return a.readSavedKey(c)
	case len(c.APIKeyCommand) == 0:
		return nil
	}
	name := strings.Join(c.APIKeyCommand, "\x00")
	return func(ctx context.Context, refused string) (string, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if key := a.known[name]; key != "" && key != refused {
			return key, nil
		}
		key, err := a.runKeyCommand(ctx, c.APIKeyCommand)
		if err != nil {
			return "", err
		}
		a.known[name] = key
		a.newConcealer().Learn(key)
		return key, nil
	}
}

// runKeyCommand runs a command outside the workspace, with the
// environment of commands, and returns the line that it prints.
func (a *Keys) runKeyCommand(ctx context.Context, words []string) (string, error) {
	ctx, stop := context.WithTimeout(ctx, keyCommandTimeout)
	defer stop()
	var out, said bytes.Buffer
	cmd := a.Launcher().Command(ctx, words[0], words[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = string(filepath.Separator), &out, &said, time.Second
	err := cmd.Run()
	key := strings.TrimSpace(out.String())
	switch {
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "", message.Errorf("provider.api_key_command: no key printed within %v", keyCommandTimeout)
	case err != nil:
		if first, _, _ := strings.Cut(strings.TrimSpace(said.String()), "\n"); first != "" {
			err = message.Errorf("%w (%s)", err, sanitize.Line(sanitize.Mask(first), 200))
		}
		return "", message.Errorf("provider.api_key_command: %w", err)
	case key == "" || strings.ContainsAny(key, "\r\n\x00"):
		return "", errors.New("provider.api_key_command: it must print one line, the key")
	}
	return key, nil
}

// readCertificate reads the client certificate, if any.
func (a *Models) readCertificate(c config.Provider) (cert, key []byte, err error) {
	if c.CertFile == "" && c.KeyFile == "" {
		return nil, nil, nil
	}
	if c.CertFile == "" || c.KeyFile == "" {
		return nil, nil, configErrorf("provider.cert_file and provider.key_file must be set together")
	}
	if cert, err = repofile.ReadOwn(a.resolvePath(c.CertFile), maxUserFile); err != nil {
		return nil, nil, configErrorf("provider.cert_file: %v", err)
	}
	if key, err = repofile.ReadOwn(a.resolvePath(c.KeyFile), maxUserFile); err != nil {
		return nil, nil, configErrorf("provider.key_file: %v", err)
	}
	return cert, key, nil
}

// noProxy is the value for no proxy.
const noProxy = "none"

// network returns provider.ca_file's content and the function that chooses a request's proxy.
func network(env Env, c config.Provider) (ca []byte, proxy func(*http.Request) (*url.URL, error), err error) {
	if c.CAFile != "" {
		if ca, err = repofile.ReadOwn(c.CAFile, maxUserFile); err != nil {
			return nil, nil, configErrorf("provider.ca_file: %v", err)
		}
	}
	proxy, err = proxyOf(env, c.Proxy)
	return ca, proxy, err
}

// proxyOf returns the function that chooses a request's proxy: from the environment, or from the settings.
func proxyOf(env Env, address string) (func(*http.Request) (*url.URL, error), error) {
	switch address {
	case "":
		return http.ProxyFromEnvironment, nil
	case noProxy:
		return nil, nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme) {
		return nil, configErrorf("provider.proxy: expected an address that begins with http://, https:// or socks5://, or none")
	}
	without := cmp.Or(env.Getenv("NO_PROXY"), env.Getenv("no_proxy"))
	return func(r *http.Request) (*url.URL, error) {
		if isProxyExempt(r.URL, without) {
			return nil, nil
		}
		return u, nil
	}, nil
}

// isProxyExempt reports whether an address needs no proxy: it is on this machine, or on the list.
func isProxyExempt(u *url.URL, list string) bool {
	host := u.Hostname()
	ip, err := netip.ParseAddr(host)
	if host == "localhost" || err == nil && ip.IsLoopback() {
		return true
	}
	for entry := range strings.SplitSeq(strings.ToLower(list), ",") {
		entry = strings.TrimSpace(entry)
		if h, port, err := net.SplitHostPort(entry); err == nil {
			if port != u.Port() {
				continue
			}
			entry = h
		}
		block, notBlock := netip.ParsePrefix(entry)
		name := strings.TrimPrefix(strings.TrimPrefix(entry, "*"), ".")
		switch low := strings.ToLower(host); {
		case entry == "":
		case entry == "*", low == name, strings.HasSuffix(low, "."+name), notBlock == nil && err == nil && block.Contains(ip):
			return true
		}
	}
	return false
}
