// Package update finds the newest release of this program, verifies it, and replaces
// the running program.
//
// A release is a folder of files on a server. SHA256SUMS lists the archives, with the
// version in their names, and SHA256SUMS.sig is its ed25519 signature. Nothing is
// unpacked or started before the signature and the checksum are verified, and the program
// is replaced only by one that starts here and reports the announced version.
// The replaced program stays beside the new one, for [Rollback].
package update

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"coder/internal/core/lazy"
	"coder/internal/core/message"
)

// Source is the server of the releases and the key that signs them.
type Source struct {
	Address   string // URL of the folder with the newest release
	Key       string // ed25519 public key in base64
	Transport http.RoundTripper
}

// IsConfigured reports whether this build of the program has a source.
func (s Source) IsConfigured() bool { return s.Address != "" && s.Key != "" }

// Release is the newest release for a system.
type Release struct {
	Version string
	archive string // file name
	sum     string // SHA-256 in hexadecimal
}

const (
	maxSums         = 1 << 20
	maxArchive      = 128 << 20
	checkTimeout    = 30 * time.Second
	downloadTimeout = 10 * time.Minute
)

// Newest returns the source's newest release for a system such as linux/amd64.
func (s Source) Newest(ctx context.Context, system string) (r Release, err error) {
	ctx, stop := context.WithTimeout(ctx, checkTimeout)
	defer stop()
	sums, err := s.get(ctx, "SHA256SUMS", maxSums)
	if err != nil {
		return r, err
	}
	signature, err := s.get(ctx, "SHA256SUMS.sig", maxSums)
	if err != nil {
		return r, err
	}
	key, err := base64.StdEncoding.DecodeString(s.Key)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return r, errors.New("the update key of this build is damaged")
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(signature)))
	if err != nil || !ed25519.Verify(key, sums, raw) {
		return r, errors.New("the signature of the release is wrong, so coder did not use it")
	}
	tail := "_" + strings.ReplaceAll(system, "/", "_") + ".tar.gz"
	for line := range strings.Lines(string(sums)) {
		f := strings.Fields(line)
		if len(f) != 2 || len(f[0]) != hex.EncodedLen(sha256.Size) {
			continue
		}
		version, begins := strings.CutPrefix(f[1], "coder_")
		version, ends := strings.CutSuffix(version, tail)
		if _, ok := parseVersion(version); begins && ends && ok && (r.Version == "" || Newer(version, r.Version)) {
			r = Release{Version: version, archive: f[1], sum: f[0]}
		}
	}
	if r.Version == "" {
		err = message.Errorf("no release for %s", system)
	}
	return r, err
}

// Download fetches the archive of a release and unpacks it in memory.
func (s Source) Download(ctx context.Context, r Release) (Archive, error) {
	ctx, stop := context.WithTimeout(ctx, downloadTimeout)
	defer stop()
	packed, err := s.get(ctx, r.archive, maxArchive)
	if err != nil {
		return Archive{}, err
	}
	if sum := sha256.Sum256(packed); hex.EncodeToString(sum[:]) != r.sum {
		return Archive{},
			message.Errorf("the checksum of %s is wrong: the download is damaged or not what was released",
				r.archive)
	}
	a := Archive{version: r.Version}
	if err := a.unpack(bytes.NewReader(packed)); err != nil {
		return Archive{}, message.Errorf("%s: %w", r.archive, err)
	}
	return a, nil
}

const maxRedirects = 5

// get downloads a file of at most "most" bytes.
func (s Source) get(ctx context.Context, name string, most int64) ([]byte, error) {
	client := &http.Client{Transport: s.Transport, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return errors.New("too many redirects")
		}
		return requireEncrypted(r.URL)
	}}
	u, err := url.Parse(strings.TrimRight(s.Address, "/") + "/" + name)
	if err == nil {
		err = requireEncrypted(u)
	}
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "coder")
	resp, err := client.Do(req)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err
		}
		return nil, message.Errorf("cannot download %s: %w", u.Redacted(), err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, message.Errorf("cannot download %s: the server answered %d", u.Redacted(), resp.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	if err != nil {
		return nil, message.Errorf("the download of %s was cut off: %w", name, err)
	}
	if int64(len(text)) > most {
		return nil, message.Errorf("%s is larger than %d MB", name, most>>20)
	}
	return text, nil
}

// requireEncrypted rejects addresses whose traffic others could read or change.
func requireEncrypted(u *url.URL) error {
	ip := net.ParseIP(u.Hostname())
	if u.Scheme == "https" || u.Scheme == "http" && ip != nil && ip.IsLoopback() {
		return nil
	}
	return message.Errorf("%s is not an https address", u.Redacted())
}

var versionPattern = lazy.Regexp(`^(\d{1,6})\.(\d{1,6})\.(\d{1,6})(?:-(alpha|beta|rc)\.(\d{1,6}))?$`)

// version is major, minor, patch, stage, and the number of that stage.
type version [5]int

// parseVersion reads a version such as 1.2.3 or 1.2.3-rc.1.
func parseVersion(text string) (v version, ok bool) {
	m := versionPattern().FindStringSubmatch(text)
	if m == nil {
		return v, false
	}
	for i, part := range m[1:] {
		v[i], _ = strconv.Atoi(part) // 0 for the stage, which is set below
	}
	v[3] = slices.Index([]string{"alpha", "beta", "rc", ""}, m[4])
	return v, true
}

// Newer reports whether version a is newer than b. It returns false if either is not a
// release version.
func Newer(a, b string) bool {
	v, known := parseVersion(a)
	w, ok := parseVersion(b)
	return known && ok && slices.Compare(v[:], w[:]) > 0
}
