package codeindex

import "strings"

// irregular are words whose ending only looks like one, and forms that have
// none, each with what it is kept as.
var irregular = map[string]string{
	"embed": "embed", "embeds": "embed", "embedded": "embed", "embedding": "embed",
	"mode": "mode", "modes": "mode", "alias": "alias", "aliases": "alias", "during": "during", "thing": "thing", "things": "thing",
	"indices": "index", "analyses": "analysis", "ran": "run", "built": "build", "sent": "send",
	"ids": "id", "ips": "ip", "dbs": "db", "apis": "api", "uris": "uri", "cpus": "cpu", "menus": "menu",
	"written": "writ", "wrote": "writ", "chosen": "choos", "chose": "choos",
}

// stem takes the endings off an English word in lower case, so that parse,
// parses, parsed, parsing and parser are one. What it leaves need not be a
// word. Other words it leaves alone.
func stem(w string) string {
	if to, ok := irregular[w]; ok {
		return to
	}
	if len(w) < 4 || strings.Trim(w, "abcdefghijklmnopqrstuvwxyz") != "" {
		return w
	}
	w = singular(w)
	w, _ = without(w, "ing", "ed")
	if root, ok := strings.CutSuffix(w, "e"); ok && len(root) > 2 {
		w = ate(root)
	}
	for more := true; more; {
		w, more = without(w, "er", "or", "ion")
	}
	if root, ok := strings.CutSuffix(w, "y"); ok {
		w = root + "i" // retry, retries
	}
	return w
}

func singular(w string) string {
	switch {
	case len(w) > 4 && (strings.HasSuffix(w, "ies") || strings.HasSuffix(w, "ied")):
		return w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "sses"):
		return w[:len(w)-2]
	case strings.HasSuffix(w, "ss"), strings.HasSuffix(w, "us"), strings.HasSuffix(w, "is"):
		return w
	}
	return strings.TrimSuffix(w, "s")
}

// without takes off the first of the endings that w has, if enough is left.
func without(w string, endings ...string) (root string, ok bool) {
	for _, e := range endings {
		root, ok := strings.CutSuffix(w, e)
		if !ok || len(root) < 3 || !strings.ContainsAny(root, "aeiouy") {
			continue
		}
		switch last := root[len(root)-1]; {
		case e == "ed" && last == 'e': // speed
			return w, false
		case (e == "ion" || e == "or") && last != 't' && last != 's': // million, color
			return w, false
		}
		if short := ate(root); short != root {
			return short, true
		}
		return single(root), true
	}
	return w, false
}

// single takes the doubling off that an ending caused: mapping, logger.
func single(root string) string {
	n := len(root)
	if n > 3 && root[n-1] == root[n-2] && !strings.ContainsRune("lsz", rune(root[n-1])) {
		return root[:n-1]
	}
	return root
}

// ate makes generate, generating, generator and generation one: all have lost
// their last letters already.
func ate(root string) string {
	short, ok := strings.CutSuffix(root, "at")
	if !ok || len(short) < 3 || strings.ContainsRune("aeiou", rune(short[len(short)-1])) {
		return root
	}
	return short
}
