package app

import (
	"context"
	"errors"
	"iter"
	"path/filepath"
	"strings"

	"coder/internal/config"
	"coder/internal/core/message"
	"coder/internal/core/sanitize"
	"coder/internal/host/keychain"
	"coder/internal/model/provider"
)

// keysDirName is the folder in CODER_HOME for API keys if the system has no keychain. Commands cannot see it.
const keysDirName = "api-keys"

// KeysDir returns the folder for API keys if the system has no keychain.
func (a *Keys) KeysDir() string { return filepath.Join(a.Home, keysDirName) }

// MaskKey makes coder mask a key that the user entered, on the screen and on disk.
func (a *Keys) MaskKey(key string) { a.newConcealer().Learn(key) }

// keyStore returns the store in which coder setup saves keys.
func (a *Keys) keyStore() keychain.Store {
	return keychain.Store{Dir: a.KeysDir(), Getenv: a.Env.Getenv}
}

// saveKey saves an endpoint's key for its server.
func (a *Keys) saveKey(ctx context.Context, c config.Provider) (keychain.Location, error) {
	place, err := a.keyStore().Save(ctx, c.BaseURL, c.APIKey)
	if err != nil {
		return "", inputErrorf("%v", err)
	}
	return place, nil
}

// readSavedKey reads the key that coder setup saved for c's server. It reads
// a key again that the server rejected: the user may have replaced it.
func (a *Keys) readSavedKey(c config.Provider) func(context.Context, string) (string, error) {
	return func(ctx context.Context, refused string) (string, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		name := "key_store\x00" + c.BaseURL
		if key := a.known[name]; key != "" && key != refused {
			return key, nil
		}
		key, err := a.keyStore().Load(ctx, keychain.Location(c.KeyStore), c.BaseURL)
		if err != nil {
			return "", message.Errorf("provider.key_store: %w; run coder setup to enter the key again", err)
		}
		a.known[name] = key
		a.newConcealer().Learn(key)
		return key, nil
	}
}

// KeySource returns the source of the API key in use, or "" without a key.
func (a *Models) KeySource() string {
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

// keyRejectedError is the error of a server that rejected the API
// key. It says where the key came from, and what to do.
type keyRejectedError struct{ error }

func (keyRejectedError) Is(target error) bool { return target == provider.ErrAuth }

// keySourceProvider adds the source of the key to errors of a server that rejects it.
type keySourceProvider struct {
	provider.Provider
	models *Models
}

func (r keySourceProvider) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		for d, err := range r.Provider.Stream(ctx, req) {
			if !yield(d, r.models.addKeySource(err)) {
				return
			}
		}
	}
}

// addKeySource adds the source of the key to err if the server rejected the key.
func (a *Models) addKeySource(err error) error {
	e, ok := errors.AsType[*provider.Error](err)
	if !ok || !errors.Is(err, provider.ErrAuth) || e.Status != 401 && e.Status != 403 {
		return err
	}
	why := e.Err
	if why == nil {
		why = message.Errorf("HTTP status %d", e.Status)
	}
	named := *e
	if from := a.KeySource(); from != "" {
		named.Err = keyRejectedError{message.Errorf(
			"the API key was rejected (from %s): %v; run coder setup to change it",
			from, why)}
	} else {
		named.Err = keyRejectedError{message.Errorf("the server wants an API key: %v; run coder setup to add one", why)}
	}
	return &named
}

// keyPrefixes lists the prefixes of vendors' API keys.
var keyPrefixes = []string{"sk-", "sk_", "gsk_", "AIza", "xai-", "ghp_", "github_pat_", "hf_", "nvapi-", "pplx-",
	"Bearer "}

// LooksLikeKey reports whether text entered in the wrong place is an API key, which must not be printed.
func LooksLikeKey(text string) bool {
	text = strings.TrimSpace(text)
	for _, b := range keyPrefixes {
		if strings.HasPrefix(text, b) {
			return true
		}
	}
	long := len(text) >= 24 && !strings.ContainsAny(text, " ./:") && strings.ContainsAny(text, "0123456789")
	return long || sanitize.Mask(text) != text
}
