package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// versionForm is a version that all packagers understand.
var versionForm = regexp.MustCompile(`^\d+\.\d+\.\d+(-(alpha|beta|rc)\.\d+)?$`)

const summary = "a coding agent for the terminal"

// manual is what a package says of itself.
type manual struct {
	Name     string            `json:"name"`
	Version  string            `json:"version"`
	About    string            `json:"description"`
	Licence  string            `json:"license"`
	OS       []string          `json:"os,omitempty"`
	CPU      []string          `json:"cpu,omitempty"`
	Programs map[string]string `json:"bin,omitempty"`
	Optional map[string]string `json:"optionalDependencies,omitempty"`
	Files    []string          `json:"files"`
}

var nodeCPU = map[string]string{"amd64": "x64", "arm64": "arm64"}

func nodeName(t target) string { return fmt.Sprintf("%s-%s-%s", name, t.os, nodeCPU[t.arch]) }

//go:embed launch.js
var launcher []byte

// nodePackage is an npm package with the program for one system; npm skips those for others.
func (r *release) nodePackage(t target, papers []entry) error {
	tree, err := r.tree(t, "npm")
	if err != nil {
		return err
	}
	return r.writeNode(manual{
		Name: nodeName(t), Version: r.version, About: summary + " (" + t.os + " " + t.arch + ")", Licence: "Apache-2.0",
		OS: []string{t.os}, CPU: []string{nodeCPU[t.arch]}, Files: []string{"bin", "share", "NOTICE"},
	}, append(papers, tree...))
}

// nodeLauncher is the npm package that people install: it picks the one for their system.
func (r *release) nodeLauncher() error {
	papers, err := r.papers()
	if err != nil {
		return err
	}
	m := manual{
		Name: name, Version: r.version, About: summary, Licence: "Apache-2.0", Files: []string{"bin", "NOTICE"},
		Programs: map[string]string{"coder": "bin/launch.js", name: "bin/launch.js"}, Optional: make(map[string]string),
	}
	for _, t := range r.targets {
		m.Optional[nodeName(t)] = r.version
	}
	return r.writeNode(m, append(papers, entry{name: "bin/launch.js", mode: 0o755, data: launcher}))
}

func (r *release) writeNode(m manual, entries []entry) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := writeTarGz(&b, "package", append([]entry{{name: "package.json", mode: 0o644, data: append(text, '\n')}},
		entries...), r.date); err != nil {
		return err
	}
	return r.write("npm-"+m.Name+"-"+m.Version+".tgz", b.Bytes())
}

// wheelTags are the systems in pip's words. The program is static, so it runs with any C library.
var wheelTags = map[target]string{
	{"linux", "amd64"}:  "manylinux_2_17_x86_64.musllinux_1_1_x86_64",
	{"linux", "arm64"}:  "manylinux_2_17_aarch64.musllinux_1_1_aarch64",
	{"darwin", "amd64"}: "macosx_12_0_x86_64", {"darwin", "arm64"}: "macosx_12_0_arm64",
}

// pythonVersion is a version as pip writes it: 1.2.3-rc.1 is 1.2.3rc1.
func pythonVersion(v string) string {
	return strings.NewReplacer("-alpha.", "a", "-beta.", "b", "-rc.", "rc").Replace(v)
}

// wheel is a package for pip with the program for one system. A wheel holds no links, so the second name is a script.
func (r *release) wheel(t target, papers []entry) error {
	tree, err := r.tree(t, "pip")
	if err != nil {
		return err
	}
	module, v := strings.ReplaceAll(name, "-", "_"), pythonVersion(r.version)
	base, info := module+"-"+v, module+"-"+v+".dist-info/"
	var files []entry
	for _, e := range tree {
		if program, ok := strings.CutPrefix(e.name, "bin/"); ok {
			e.name = base + ".data/scripts/" + program
		} else {
			e.name = base + ".data/data/" + e.name
		}
		files = append(files, e)
	}
	second := "#!/bin/sh\nexec \"${0%/*}/coder\" \"$@\"\n"
	files = append(files, entry{name: base + ".data/scripts/" + name, mode: 0o755, data: []byte(second)})
	for _, e := range papers {
		e.name = info + "licenses/" + e.name
		files = append(files, e)
	}
	about := fmt.Sprintf("Metadata-Version: 2.4\nName: %s\nVersion: %s\nSummary: %s\nLicense-Expression: Apache-2.0\n",
		name, v, summary) +
		"License-File: LICENSE\nLicense-File: NOTICE\n"
	var tags strings.Builder
	for tag := range strings.SplitSeq(wheelTags[t], ".") {
		fmt.Fprintf(&tags, "Tag: py3-none-%s\n", tag)
	}
	files = append(files, entry{name: info + "METADATA", mode: 0o644, data: []byte(about)},
		entry{name: info + "WHEEL", mode: 0o644,
			data: []byte("Wheel-Version: 1.0\nGenerator: coder-release\nRoot-Is-Purelib: false\n" + tags.String())})
	var record strings.Builder
	for _, e := range files {
		sum := sha256.Sum256(e.data)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", e.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(e.data))
	}
	fmt.Fprintf(&record, "%sRECORD,,\n", info)
	files = append(files, entry{name: info + "RECORD", mode: 0o644, data: []byte(record.String())})
	var b bytes.Buffer
	if err := writeZip(&b, files, r.date); err != nil {
		return err
	}
	return r.write(base+"-py3-none-"+wheelTags[t]+".whl", b.Bytes())
}

// systemPackages are a deb and an rpm, made by nfpm, which tools/go.mod pins.
func (r *release) systemPackages(ctx context.Context, t target, papers []entry) error {
	for _, form := range []string{"deb", "rpm"} {
		tree, err := r.tree(t, form)
		if err != nil {
			return err
		}
		dir := filepath.Join(r.work, form+"_"+t.arch)
		var contents []map[string]any
		add := func(e entry, at string) error {
			file := filepath.Join(dir, filepath.FromSlash(at))
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				return err
			}
			contents = append(contents, map[string]any{"src": file, "dst": at,
				"file_info": map[string]any{"mode": e.mode, "mtime": r.date}})
			return os.WriteFile(file, e.data, e.mode)
		}
		for _, e := range tree {
			if err := add(e, "/usr/"+e.name); err != nil {
				return err
			}
		}
		for _, e := range papers {
			at := "/usr/share/doc/" + name + "/" + e.name
			if form == "deb" && e.name == "LICENSE" {
				at = "/usr/share/doc/" + name + "/copyright"
			}
			if err := add(e, at); err != nil {
				return err
			}
		}
		for _, link := range [][2]string{
			{"bin/" + name, "coder"}, {"share/man/man1/" + name + ".1", "coder.1"},
			{"share/bash-completion/completions/" + name, "coder"},
			{"share/fish/vendor_completions.d/" + name + ".fish", "coder.fish"},
		} {
			contents = append(contents, map[string]any{"src": link[1], "dst": "/usr/" + link[0], "type": "symlink",
				"file_info": map[string]any{"mtime": r.date}})
		}
		text, err := json.Marshal(map[string]any{ // which is YAML, too
			"name": name, "arch": t.arch, "platform": "linux", "version": r.version,
			"maintainer":  "the authors of coder <nobody@localhost>",
			"description": summary, "recommends": []string{"git"}, "license": "Apache-2.0", "section": "devel",
			"priority": "optional", "mtime": r.date, "contents": contents,
			"rpm": map[string]any{"buildhost": "localhost", "compression": "gzip"},
		})
		if err != nil {
			return err
		}
		file := filepath.Join(dir, "nfpm.yaml")
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return err
		}
		env := []string{fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.date.Unix())}
		if _, err := r.run(ctx, env, r.goTool, "tool", "-modfile=tools/go.mod", "nfpm", "package", "-f", file, "-p", form,
			"-t", r.out); err != nil {
			return err
		}
	}
	return nil
}
