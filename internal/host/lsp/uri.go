//go:build unix

package lsp

import (
	"net/url"
	"path/filepath"
)

// uriOf is the URI of an absolute path.
func uriOf(path string) string {
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// pathOf is the absolute, clean path a file URI stands for; "" if it stands for
// none. Servers escape more or less than we do, so URIs are compared by path.
func pathOf(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" || !filepath.IsAbs(u.Path) {
		return ""
	}
	return filepath.Clean(u.Path)
}

// nameOf is how we speak of an absolute path: relative to root if it is below.
func nameOf(root, path string) string {
	if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return path
}
