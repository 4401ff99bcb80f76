package update

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const system = "linux/amd64"

// says is a program that prints that it is a version.
func says(version string) string { return "#!/bin/sh\necho coder " + version + " '(commit unknown)'\n" }

// released is a server with a signed release.
type released struct {
	files   map[string][]byte
	private ed25519.PrivateKey
	public  string
	address string
}

// release serves a release whose archive holds these files below its top folder.
func release(t *testing.T, version string, files map[string]string) *released {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &released{files: make(map[string][]byte), private: private, public: base64.StdEncoding.EncodeToString(public)}
	r.add(t, version, files)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		text, ok := r.files[strings.TrimPrefix(q.URL.Path, "/dl/")]
		if !ok {
			http.NotFound(w, q)
			return
		}
		_, _ = w.Write(text)
	}))
	t.Cleanup(server.Close)
	r.address = server.URL + "/dl/"
	return r
}

// add adds an archive to the release and signs its checksums again.
func (r *released) add(t *testing.T, version string, files map[string]string) {
	t.Helper()
	var b bytes.Buffer
	zw := gzip.NewWriter(&b)
	tw := tar.NewWriter(zw)
	for name, text := range files {
		if err := tw.WriteHeader(&tar.Header{Name: "coder_any/" + name, Mode: 0o755, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(tw.Close(), zw.Close()); err != nil {
		t.Fatal(err)
	}
	name := "coder_" + version + "_linux_amd64.tar.gz"
	r.files[name] = b.Bytes()
	r.files["SHA256SUMS"] = fmt.Appendf(r.files["SHA256SUMS"], "%x  %s\n", sha256.Sum256(b.Bytes()), name)
	r.files["SHA256SUMS.sig"] = []byte(base64.StdEncoding.EncodeToString(ed25519.Sign(r.private, r.files["SHA256SUMS"])) + "\n")
}

func (r *released) source() Source { return Source{Address: r.address, Key: r.public} }

// installed is a program with its manual page below a prefix of its own.
func installed(t *testing.T) (path string) {
	t.Helper()
	prefix := t.TempDir()
	for name, text := range map[string]string{"bin/coder": says("1.2.3"), "share/man/man1/coder.1": "old page"} {
		at := filepath.Join(prefix, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(prefix, "bin", "coder")
}

// holds checks that the program at path is one that prints this version, and that the
// folder holds nothing but programs.
func holds(t *testing.T, path, version string, beside ...string) {
	t.Helper()
	if text, err := os.ReadFile(path); err != nil || string(text) != says(version) {
		t.Errorf("%s is %q (%v), want %s", path, text, err, version)
	}
	found, err := os.ReadDir(filepath.Dir(path))
	var names []string
	for _, f := range found {
		names = append(names, f.Name())
	}
	if want := append([]string{"coder"}, beside...); err != nil || fmt.Sprint(names) != fmt.Sprint(want) {
		t.Errorf("there are %q (%v), want %q", names, err, want)
	}
}

func update(t *testing.T, s Source, path string) error {
	t.Helper()
	r, err := s.Newest(t.Context(), system)
	if err != nil {
		return err
	}
	a, err := s.Download(t.Context(), r)
	if err != nil {
		return err
	}
	return a.Install(t.Context(), path)
}

func TestUpdateReplacesTheProgramAndRollbackRestoresIt(t *testing.T) {
	r := release(t, "1.2.4", map[string]string{
		"bin/coder": says("1.2.4"), "share/man/man1/coder.1": "new page", "share/zsh/site-functions/_coder": "new", "NOTICE": "x",
	})
	path := installed(t)
	if err := update(t, r.source(), path); err != nil {
		t.Fatal(err)
	}
	holds(t, path, "1.2.4", "coder.old")
	holds(t, BackupPath(path), "1.2.3", "coder.old")
	prefix := filepath.Dir(filepath.Dir(path))
	if text, _ := os.ReadFile(filepath.Join(prefix, "share/man/man1/coder.1")); string(text) != "new page" {
		t.Errorf("the manual page is %q", text)
	}
	if _, err := os.Lstat(filepath.Join(prefix, "share/zsh")); err == nil {
		t.Error("it made a folder that was not there")
	}
	for _, want := range []string{"1.2.3", "1.2.4", "1.2.3"} {
		version, err := Rollback(t.Context(), path)
		if err != nil || version != want {
			t.Errorf("rolled back to %q: %v, want %s", version, err, want)
		}
		holds(t, path, want, "coder.old")
	}
	r.add(t, "1.2.5-rc.1", map[string]string{"bin/coder": says("1.2.5-rc.1")})
	if err := update(t, r.source(), path); err != nil {
		t.Fatal(err)
	}
	holds(t, path, "1.2.5-rc.1", "coder.old")
	holds(t, BackupPath(path), "1.2.3", "coder.old")
}

func TestNothingIsReplacedUnlessTheReleaseIsTheOneThatWasSigned(t *testing.T) {
	const sums, signature, archive = "SHA256SUMS", "SHA256SUMS.sig", "coder_1.2.4_linux_amd64.tar.gz"
	other := base64.StdEncoding.EncodeToString(make([]byte, ed25519.PublicKeySize))
	for name, c := range map[string]struct {
		program string
		change  func(r *released)
		why     string
	}{
		"another key":            {"", func(r *released) { r.public = other }, "signature"},
		"no key at all":          {"", func(r *released) { r.public = "x" }, "key of this build"},
		"altered checksums":      {"", func(r *released) { r.files[sums][0] ^= 1 }, "signature"},
		"no signature":           {"", func(r *released) { delete(r.files, signature) }, "answered 404"},
		"an empty signature":     {"", func(r *released) { r.files[signature] = nil }, "signature"},
		"no checksums":           {"", func(r *released) { delete(r.files, sums) }, "answered 404"},
		"too many checksums":     {"", func(r *released) { r.files[sums] = make([]byte, maxSums+1) }, "larger than 1 MB"},
		"no archive":             {"", func(r *released) { delete(r.files, archive) }, "answered 404"},
		"an altered archive":     {"", func(r *released) { r.files[archive][40] ^= 1 }, "checksum"},
		"a cut archive":          {"", func(r *released) { r.files[archive] = r.files[archive][:30] }, "checksum"},
		"a program that fails":   {"#!/bin/sh\nexit 3\n", nil, "does not start here"},
		"a program of elsewhere": {"\x7fELF not for this machine", nil, "does not start here"},
		"another version":        {says("1.2.2"), nil, `reports version "1.2.2"`},
		"another program":        {"#!/bin/sh\necho hello\n", nil, "does not print a version"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.program == "" {
				c.program = says("1.2.4")
			}
			r := release(t, "1.2.4", map[string]string{"bin/coder": c.program})
			if c.change != nil {
				c.change(r)
			}
			path := installed(t)
			if err := update(t, r.source(), path); err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("it says %v, want %s", err, c.why)
			}
			holds(t, path, "1.2.3")
		})
	}
	t.Run("without a program", func(t *testing.T) {
		r := release(t, "1.2.4", map[string]string{"LICENSE": "x"})
		path := installed(t)
		if err := update(t, r.source(), path); err == nil || !strings.Contains(err.Error(), "has no program") {
			t.Errorf("it says %v", err)
		}
		holds(t, path, "1.2.3")
	})
}

func TestADownloadThatIsCutOffChangesNothing(t *testing.T) {
	r := release(t, "1.2.4", map[string]string{"bin/coder": says("1.2.4")})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		text := r.files[strings.TrimPrefix(q.URL.Path, "/")]
		w.Header().Set("Content-Length", fmt.Sprint(len(text)))
		if strings.HasSuffix(q.URL.Path, ".gz") {
			text = text[:len(text)/2]
		}
		_, _ = w.Write(text)
	}))
	defer server.Close()
	path := installed(t)
	if err := update(t, Source{Address: server.URL, Key: r.public}, path); err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("it says %v", err)
	}
	holds(t, path, "1.2.3")
}

func TestAnAddressMustBeEncrypted(t *testing.T) {
	r := release(t, "1.2.4", map[string]string{"bin/coder": says("1.2.4")})
	away := httptest.NewServer(http.RedirectHandler("http://example.org/SHA256SUMS", http.StatusFound))
	defer away.Close()
	for _, address := range []string{"http://example.org/dl", "file:///tmp", "ftp://127.0.0.1", away.URL} {
		s := r.source()
		s.Address = address
		if _, err := s.Newest(t.Context(), system); err == nil || !strings.Contains(err.Error(), "is not an https address") {
			t.Errorf("from %s: %v", address, err)
		}
	}
}

func TestTheReleaseIsForThisSystem(t *testing.T) {
	r := release(t, "1.2.4", map[string]string{"bin/coder": says("1.2.4")})
	if _, err := r.source().Newest(t.Context(), "plan9/386"); err == nil || !strings.Contains(err.Error(), "no release for plan9/386") {
		t.Errorf("it says %v", err)
	}
	r.add(t, "1.2.10", map[string]string{"bin/coder": says("1.2.10")})
	r.add(t, "1.2.9", map[string]string{"bin/coder": says("1.2.9")})
	if newest, err := r.source().Newest(t.Context(), system); err != nil || newest.Version != "1.2.10" {
		t.Errorf("the newest is %q: %v", newest.Version, err)
	}
}

func TestAProgramThatIsNotOursToReplaceStays(t *testing.T) {
	r := release(t, "1.2.4", map[string]string{"bin/coder": says("1.2.4")})
	path := installed(t)
	if _, err := Rollback(t.Context(), path); err == nil || !strings.Contains(err.Error(), "no older program") {
		t.Errorf("without an older one it says %v", err)
	}
	if err := os.Chmod(path, 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	if err := update(t, r.source(), path); err == nil || !strings.Contains(err.Error(), "setuid") {
		t.Errorf("setuid: %v", err)
	}
	link := filepath.Join(filepath.Dir(path), "coder-agent")
	if err := os.Symlink("coder", link); err != nil {
		t.Fatal(err)
	}
	if err := CheckReplaceable(link); err == nil || !strings.Contains(err.Error(), "regular file") {
		t.Errorf("a link: %v", err)
	}
	holds(t, path, "1.2.3", "coder-agent")
	dir := t.TempDir()
	if err := errors.Join(os.Rename(path, filepath.Join(dir, "coder")), os.Chmod(dir, 0o555)); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 { // who may write everywhere
		if err := os.Chmod(filepath.Join(dir, "coder"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := CheckReplaceable(filepath.Join(dir, "coder")); err == nil || !strings.Contains(err.Error(), "cannot write") {
			t.Errorf("a folder that cannot be written: %v", err)
		}
	}
}

func TestVersionsAreOrdered(t *testing.T) {
	order := []string{"0.9.12", "1.0.0-alpha.1", "1.0.0-alpha.10", "1.0.0-beta.2", "1.0.0-rc.1", "1.0.0", "1.0.1", "1.10.0", "2.0.0"}
	for i, a := range order {
		for j, b := range order {
			if Newer(a, b) != (i > j) {
				t.Errorf("%s after %s: %v", a, b, Newer(a, b))
			}
		}
	}
	for _, odd := range []string{"", "0.1.0-dev", "1.2", "1.2.3.4", "v1.2.3", "1.2.3-rc", "1.2.3+x", "9999999.0.0"} {
		if Newer(odd, "0.0.1") || Newer("9.9.9", odd) {
			t.Errorf("%q is a version", odd)
		}
	}
}

func TestWhatAKilledUpdateLeftGoesWithTheNextOne(t *testing.T) {
	r := release(t, "1.2.4", map[string]string{"bin/coder": says("1.2.4")})
	path := installed(t)
	for _, left := range []string{path + ".new", path + ".keep", filepath.Join(filepath.Dir(path), ".new-123")} {
		if err := os.WriteFile(left, []byte("half"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := update(t, r.source(), path); err != nil {
		t.Fatal(err)
	}
	holds(t, path, "1.2.4", "coder.old")
	holds(t, BackupPath(path), "1.2.3", "coder.old")
}
