# Prints the facts of each rule of gitleaks that the tests of internal/core/secret use: awk -f lists.awk -v version=V -v date=D gitleaks.toml
BEGIN {
	printf "# source: github.com/zricethezav/gitleaks/v8 %s, config/gitleaks.toml (MIT, see NOTICE), date: %s\n", version, date
	print "# Made by make lists; a section is a rule."
}
/^ *\[/ && !words { rule = $0 == "[[rules]]"; next }
!rule { next }
words || /^keywords = / {
	words = !/\]/
	line = $0
	while (match(line, /"[^"]*"/)) {
		print "keyword " substr(line, RSTART + 1, RLENGTH - 2)
		line = substr(line, RSTART + RLENGTH)
	}
	next
}
/^id = / { gsub(/^id = "|"$/, ""); printf "\n[%s]\n", $0 }
/^(regex|path) = '''/ { key = $1; gsub(/^(regex|path) = '''|'''$/, ""); print key " " $0 }
/^entropy = / { print "entropy " $3 }
