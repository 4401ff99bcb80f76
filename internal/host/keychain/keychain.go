// Package keychain saves API keys, in the system's keychain or in files that only the user can read. A
// key belongs to the address of the server that it was entered for.
package keychain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"coder/internal/core/message"
	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"

	"github.com/zalando/go-keyring"
)

// Location is where a key is saved: a value of the setting provider.key_store.
type Location string

// The places.
const (
	System Location = "keychain"
	File   Location = "file"
)

const (
	service = "coder"
	maxKey  = 16 << 10
	// keychainTimeout is the longest wait for the keychain, which may ask the user for a password.
	keychainTimeout = time.Minute
)

// Store saves keys. Dir is the folder for files; Getenv reads the environment.
type Store struct {
	Dir    string
	Getenv func(string) string
}

// Save saves the key of the server at address in the system's keychain, or in a file if there is none.
// It returns the place.
func (s Store) Save(ctx context.Context, address, key string) (Location, error) {
	if s.hasSystem() {
		err := withTimeout(ctx, func() error { return keyring.Set(service, account(address), key) })
		if err == nil || ctx.Err() != nil {
			_ = os.Remove(s.keyFile(address)) // an older key
			return System, ctx.Err()
		}
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return "", message.Errorf("save the API key: %w", err)
	}
	if err := atomicfile.Write(s.keyFile(address), []byte(key+"\n"), 0o600); err != nil {
		return "", message.Errorf("save the API key: %w", err)
	}
	return File, nil
}

// Load reads the key of the server at address.
func (s Store) Load(ctx context.Context, place Location, address string) (key string, err error) {
	switch {
	case place == File:
		var text []byte
		text, err = repofile.ReadOwn(s.keyFile(address), maxKey)
		key = string(text)
	case !s.hasSystem():
		err = errors.New("this session has no keychain")
	default:
		err = withTimeout(ctx, func() (err error) {
			key, err = keyring.Get(service, account(address))
			return err
		})
	}
	if err == nil && strings.TrimSpace(key) == "" || errors.Is(err, fs.ErrNotExist) ||
		errors.Is(err, keyring.ErrNotFound) {
		err = message.Errorf("no key is saved for %s", account(address))
	}
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(key), nil
}

// hasSystem reports whether this session has a system keychain. On systems with D-Bus, the library would
// start a bus if the session has none.
func (s Store) hasSystem() bool {
	switch runtime.GOOS {
	case "darwin", "windows":
		return true
	case "linux", "freebsd", "openbsd", "netbsd", "dragonfly":
		return s.Getenv("DBUS_SESSION_BUS_ADDRESS") != ""
	}
	return false
}

// withTimeout runs do with the timeout wait.
func withTimeout(ctx context.Context, do func() error) error {
	ctx, stop := context.WithTimeout(ctx, keychainTimeout)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// account returns the server of an address, since a key never goes to another server.
func account(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return address
	}
	return u.Scheme + "://" + strings.ToLower(u.Host)
}

func (s Store) keyFile(address string) string {
	sum := sha256.Sum256([]byte(account(address)))
	return filepath.Join(s.Dir, hex.EncodeToString(sum[:16]))
}
