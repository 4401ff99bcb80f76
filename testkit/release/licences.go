package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// licenceFile is a file of a module that a copy of it must carry.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// library is a module that is in the program.
type library struct {
	path, version string
	papers        []byte // its licences and notices
	licence       string // by its SPDX name
}

// libraries are the modules in a program, as the compiler noted them, and Go's own library.
func (r *release) libraries(ctx context.Context, t target) (list []library, err error) {
	info, err := buildinfo.ReadFile(r.binary(t))
	if err != nil {
		return nil, err
	}
	root, err := r.run(ctx, nil, r.goTool, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	list = append(list, library{path: "std", version: strings.TrimPrefix(info.GoVersion, "go")})
	dirs := map[string]string{"std": strings.TrimSpace(string(root))}
	for _, m := range info.Deps {
		out, err := r.run(ctx, nil, r.goTool, "list", "-m", "-f", "{{.Dir}}", m.Path)
		if err != nil {
			return nil, err
		}
		list, dirs[m.Path] = append(list, library{path: m.Path, version: version(m)}), strings.TrimSpace(string(out))
	}
	for i, l := range list {
		if list[i].papers, list[i].licence, err = readLicences(dirs[l.path]); err != nil {
			return nil, fmt.Errorf("%s: %w", l.path, err)
		}
	}
	return list, nil
}

func version(m *debug.Module) string {
	if m.Replace != nil {
		m = m.Replace
	}
	return m.Version
}

// readLicences reads what the folder of a module says about its licence. One that says nothing fails.
func readLicences(dir string) (text []byte, id string, err error) {
	found, err := os.ReadDir(dir)
	if err != nil {
		return nil, "", err
	}
	for _, f := range found {
		if !f.Type().IsRegular() || !licenceFile.MatchString(f.Name()) {
			continue
		}
		one, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, "", err
		}
		text = append(append(text, bytes.TrimSpace(one)...), "\n\n"...)
		if n := strings.ToUpper(f.Name()); id == "" && !strings.HasPrefix(n, "NOTICE") && !strings.HasPrefix(n, "PATENTS") {
			id = licenceOf(string(one))
		}
	}
	if id == "" {
		return nil, "", fmt.Errorf("no known licence in %s", dir)
	}
	return text, id, nil
}

// licenceOf names a licence by words that only it has.
func licenceOf(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	has := func(words string) bool { return strings.Contains(text, words) }
	switch {
	case has("Apache License") && has("Version 2.0"):
		return "Apache-2.0"
	case has("Mozilla Public License"):
		return "MPL-2.0"
	case has("Permission is hereby granted, free of charge"):
		return "MIT"
	case has("Redistribution and use in source and binary forms") && has("Neither the name"):
		return "BSD-3-Clause"
	case has("Redistribution and use in source and binary forms"):
		return "BSD-2-Clause"
	case has("Permission to use, copy, modify, and/or distribute"):
		return "ISC"
	}
	return ""
}

// gatherNotices is our own notice with the licences of all that is in any of the programs.
func (r *release) gatherNotices(ctx context.Context) ([]byte, error) {
	own, err := os.ReadFile("NOTICE")
	if err != nil {
		return nil, err
	}
	var all []library
	for _, t := range r.targets {
		list, err := r.libraries(ctx, t)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	slices.SortFunc(all, func(a, b library) int {
		return cmp.Or(cmp.Compare(a.path, b.path),
			cmp.Compare(a.version, b.version))
	})
	all = slices.CompactFunc(all, func(a, b library) bool { return a.path == b.path && a.version == b.version })
	b := bytes.NewBuffer(append(bytes.TrimSpace(own), '\n'))
	for _, l := range all {
		fmt.Fprintf(b, "\n%s\n%s %s\n%s\n\n%s", strings.Repeat("-", 72), l.path, l.version, strings.Repeat("-", 72), l.papers)
	}
	return append(bytes.TrimSpace(b.Bytes()), '\n'), nil
}

// billOfMaterials lists what is in a program, as SPDX 2.3.
func (r *release) billOfMaterials(ctx context.Context, t target) ([]byte, error) {
	text, err := os.ReadFile(r.binary(t))
	if err != nil {
		return nil, err
	}
	libraries, err := r.libraries(ctx, t)
	if err != nil {
		return nil, err
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(text))
	type object = map[string]any
	packages := []object{{
		"SPDXID": "SPDXRef-coder", "name": "coder", "versionInfo": r.version, "downloadLocation": "NOASSERTION",
		"filesAnalyzed":    false,
		"licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0", "copyrightText": "NOASSERTION",
		"primaryPackagePurpose": "APPLICATION",
		"checksums":             []object{{"algorithm": "SHA256", "checksumValue": sum}},
	}}
	relations := []object{{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
		"relatedSpdxElement": "SPDXRef-coder"}}
	for i, l := range libraries {
		id := fmt.Sprintf("SPDXRef-%d", i+1)
		packages = append(packages, object{
			"SPDXID": id, "name": l.path, "versionInfo": l.version, "downloadLocation": "NOASSERTION", "filesAnalyzed": false,
			"licenseConcluded": "NOASSERTION", "licenseDeclared": l.licence, "copyrightText": "NOASSERTION",
			"externalRefs": []object{{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
				"referenceLocator": "pkg:golang/" + l.path + "@" + l.version}},
		})
		relations = append(relations, object{"spdxElementId": "SPDXRef-coder", "relationshipType": "STATIC_LINK",
			"relatedSpdxElement": id})
	}
	list, err := json.MarshalIndent(object{
		"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
		"name":              fmt.Sprintf("coder-%s-%s-%s", r.version, t.os, t.arch),
		"documentNamespace": "urn:coder:" + r.version + ":" + sum,
		"creationInfo":      object{"created": r.date.Format(time.RFC3339), "creators": []string{"Tool: coder-release"}},
		"packages":          packages, "relationships": relations,
	}, "", "  ")
	return append(list, '\n'), err
}
