package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"coder/internal/config"
	"coder/internal/core/message"
	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"
	"coder/internal/host/update"
	"coder/internal/model/transport"
)

// updateAddress is the address of newer versions, and updateKey the public key that signs them:
// a release build sets both with -ldflags -X. A build without them finds and changes nothing.
var updateAddress, updateKey string

// Updater finds and installs newer versions of coder.
type Updater struct {
	Installation Installation
	source       update.Source
}

// NewUpdater returns the updater for this program. It reaches the releases through provider.proxy, and trusts provider.ca_file.
// On an error, the updater cannot reach the releases.
func NewUpdater(env Env, c config.Provider) (Updater, error) {
	s := env.Releases
	s.Address, s.Key = cmp.Or(s.Address, updateAddress), cmp.Or(s.Key, updateKey)
	u := Updater{Installation: FindInstallation(env)}
	ca, proxy, err := network(env, c)
	if err != nil {
		return u, err
	}
	web := &http.Transport{Proxy: proxy, ForceAttemptHTTP2: true}
	if ca != nil {
		pool, err := transport.Authorities(ca)
		if err != nil {
			return u, configErrorf("provider.ca_file: %v", err)
		}
		web.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	s.Transport = web
	u.source = s
	return u, nil
}

// Latest asks for the newest release. newer reports whether it is newer than this program.
func (u Updater) Latest(ctx context.Context) (r update.Release, newer bool, err error) {
	if !u.source.IsConfigured() {
		return r, false, errors.New("this build of coder does not know where newer versions are, so nothing was changed")
	}
	r, err = u.source.Newest(ctx, runtime.GOOS+"/"+runtime.GOARCH)
	switch {
	case err != nil:
		return r, false, err
	case r.Version == Version:
		return r, false, nil
	case !update.Newer(r.Version, Version):
		return r, false, message.Errorf("the newest release is coder %s, which is not newer than this coder (%s)",
			r.Version,
			Version)
	}
	return r, true, nil
}

// updateCheckFile is the file in CODER_HOME with the time of the last check for a newer version.
var updateCheckFile = filepath.Join("cache", "update")

const updateCheckInterval = 24 * time.Hour

// NewerVersion returns the newest release, if it is newer than this program. coder
// checks only if update.check is on, once a day. A failed check finds nothing.
func (a *Site) NewerVersion(ctx context.Context) string {
	if !a.Config.Update.Check || a.Home == "" {
		return ""
	}
	note, now := filepath.Join(a.Home, updateCheckFile), a.Env.Now()
	text, _, _ := repofile.ReadOwnHead(note, 64)
	if last, err := time.Parse(time.RFC3339, string(text)); err == nil && now.Sub(last).Abs() < updateCheckInterval {
		return ""
	}
	err := errors.Join(os.MkdirAll(filepath.Dir(note), 0o700),
		atomicfile.WriteCache(note, now.AppendFormat(nil, time.RFC3339), 0o600))
	if err != nil {
		return "" // otherwise every start would check
	}
	u, err := NewUpdater(a.Env, a.Config.Provider)
	if err != nil {
		return ""
	}
	if r, newer, err := u.Latest(ctx); err == nil && newer {
		return r.Version
	}
	return ""
}

// CheckReplaceable returns an error if coder cannot replace this program.
func (u Updater) CheckReplaceable() error {
	if u.Installation.Method != "archive" {
		return errors.New("coder does not know how it was installed, so it does not replace itself")
	}
	return update.CheckReplaceable(u.Installation.Path)
}

// Install replaces this program with a release.
func (u Updater) Install(ctx context.Context, r update.Release) error {
	archive, err := u.source.Download(ctx, r)
	if err != nil {
		return err
	}
	return archive.Install(ctx, u.Installation.Path)
}

// RollBack swaps this program with the one that the last update replaced.
func (u Updater) RollBack(ctx context.Context) (version string, err error) {
	if err := u.CheckReplaceable(); err != nil {
		return "", err
	}
	return update.Rollback(ctx, u.Installation.Path)
}
