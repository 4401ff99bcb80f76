package main

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
)

// newer has a server with the signed checksums of a release: newer VERSION. The program
// is then version 1.2.3. The verb looked waits until the program has asked for both files.
func (s *scene) newer(args []string) error {
	public, private, err := ed25519.GenerateKey(nil)
	sums := fmt.Appendf(nil, "%s  coder_%s_%s_%s.tar.gz\n", strings.Repeat("0", 64), args[0], runtime.GOOS, runtime.GOARCH)
	files := map[string]string{"/SHA256SUMS": string(sums), "/SHA256SUMS.sig": base64.StdEncoding.EncodeToString(ed25519.Sign(private, sums))}
	s.looked = new(atomic.Bool)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, files[r.URL.Path])
		if strings.HasSuffix(r.URL.Path, ".sig") {
			s.looked.Store(true)
		}
	}))
	s.t.Cleanup(server.Close)
	s.env = append(s.env, "CODER_TEST_RELEASES="+server.URL+" "+base64.StdEncoding.EncodeToString(public))
	return err
}

func (s *scene) hasLooked([]string) error {
	if !s.until(s.looked.Load) {
		return errors.New("nothing was asked for the newest version")
	}
	return nil
}
