package app

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strings"

	"coder/internal/config"
	"coder/internal/core/sanitize"
	"coder/internal/host/keychain"
	"coder/internal/model/provider"
)

// keysDir is the folder below the user's own in which API keys are saved where the system has no
// keychain. No command sees it.
const keysDir = "api-keys"

// KeysDir is where API keys are saved where the system has no keychain.
func (a *App) KeysDir() string { return filepath.Join(a.Home, keysDir) }

// Hide keeps a key that was entered off the screen and the disk.
func (a *App) Hide(key string) { a.keys.conceals(a).Learn(key) }

// keychain is where coder setup saves keys.
func (a *App) keychain() keychain.Store {
	return keychain.Store{Dir: a.KeysDir(), Getenv: a.Env.Getenv}
}

// saveKey saves the key of an endpoint for its server.
func (a *App) saveKey(ctx context.Context, c config.Provider) (keychain.Place, error) {
	place, err := a.keychain().Save(ctx, c.BaseURL, c.APIKey)
	if err != nil {
		return "", inputf("%v", err)
	}
	return place, nil
}

// savedKey reads the key that coder setup saved for the server of c. A key that the server
// rejected is read again: it may have been replaced.
func (a *App) savedKey(c config.Provider) func(context.Context, string) (string, error) {
	return func(ctx context.Context, refused string) (string, error) {
		a.keys.mu.Lock()
		defer a.keys.mu.Unlock()
		name := "key_store\x00" + c.BaseURL
		if key := a.keys.keys[name]; key != "" && key != refused {
			return key, nil
		}
		key, err := a.keychain().Load(ctx, keychain.Place(c.KeyStore), c.BaseURL)
		if err != nil {
			return "", fmt.Errorf("provider.key_store: %w; run coder setup to enter the key again", err)
		}
		if a.keys.keys == nil {
			a.keys.keys = make(map[string]string)
		}
		a.keys.keys[name] = key
		a.keys.conceals(a).Learn(key)
		return key, nil
	}
}

// KeySource names where the API key of the endpoint in use comes from; "" without a key.
func (a *App) KeySource() string {
	c := a.endpoint()
	switch {
	case c.APIKey != "":
		return strings.TrimPrefix(a.Report.Origin("provider.api_key").Source, "env ")
	case len(c.APIKeyCommand) > 0:
		return "provider.api_key_command"
	case c.KeyStore == string(keychain.System):
		return "the system keychain"
	case c.KeyStore == string(keychain.File):
		return a.KeysDir()
	}
	return ""
}

// rejection is the error of a server that did not accept the API key. It names where the key
// came from, and what to do.
type rejection struct{ error }

func (rejection) Is(target error) bool { return target == provider.ErrAuth }

// rejects names the source of the key in errors of a server that does not accept it.
type rejects struct {
	provider.Provider
	app *App
}

func (r rejects) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		for d, err := range r.Provider.Stream(ctx, req) {
			if !yield(d, r.app.rejected(err)) {
				return
			}
		}
	}
}

// rejected is err, with the source of the key if the server did not accept it.
func (a *App) rejected(err error) error {
	e, ok := errors.AsType[*provider.Error](err)
	if !ok || !errors.Is(err, provider.ErrAuth) || e.Status != 401 && e.Status != 403 {
		return err
	}
	why := e.Err
	if why == nil {
		why = fmt.Errorf("HTTP status %d", e.Status)
	}
	named := *e
	if from := a.KeySource(); from != "" {
		named.Err = rejection{fmt.Errorf("the API key was rejected (from %s): %v; run coder setup to change it", from, why)}
	} else {
		named.Err = rejection{fmt.Errorf("the server wants an API key: %v; run coder setup to add one", why)}
	}
	return &named
}

// keyBeginnings are how the API keys of vendors begin.
var keyBeginnings = []string{"sk-", "sk_", "gsk_", "AIza", "xai-", "ghp_", "github_pat_", "hf_", "nvapi-", "pplx-", "Bearer "}

// LooksLikeKey reports whether text that was entered where none belongs is an API key, which
// must not be printed.
func LooksLikeKey(text string) bool {
	text = strings.TrimSpace(text)
	for _, b := range keyBeginnings {
		if strings.HasPrefix(text, b) {
			return true
		}
	}
	long := len(text) >= 24 && !strings.ContainsAny(text, " ./:") && strings.ContainsAny(text, "0123456789")
	return long || sanitize.Mask(text) != text
}
