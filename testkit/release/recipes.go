package main

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

//go:embed recipes
var recipes embed.FS

// archiveName is what the archive for a system is called, without its ending.
func archiveName(version string, t target) string {
	return fmt.Sprintf("coder_%s_%s_%s", version, t.os, t.arch)
}

// ingredients are what recipes say of a release.
type ingredients struct {
	Version, Address string
	out              string
}

// Archive is the name of an archive.
func (i ingredients) Archive(system, arch string) string {
	return archiveName(i.Version, target{system, arch}) + ".tar.gz"
}

// Sum is the SHA-256 of an archive.
func (i ingredients) Sum(system, arch string) (string, error) {
	text, err := os.ReadFile(filepath.Join(i.out, i.Archive(system, arch)))
	return fmt.Sprintf("%x", sha256.Sum256(text)), err
}

// recipes writes the formula, the flake and the recipe of an image. The first two name
// an address, so there are none without one.
func (r *release) recipes() error {
	all, err := template.ParseFS(recipes, "recipes/*")
	if err != nil {
		return err
	}
	with := ingredients{r.version, strings.TrimRight(r.address, "/"), r.out}
	for _, one := range all.Templates() {
		var b bytes.Buffer
		if r.address == "" && one.Name() != "Dockerfile" {
			continue
		}
		if err := one.Execute(&b, with); err != nil {
			return err
		}
		if err := r.write(one.Name(), b.Bytes()); err != nil {
			return err
		}
	}
	return nil
}
