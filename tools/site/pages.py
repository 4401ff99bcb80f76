"""What the website needs and a repository does not: see mkdocs.yml."""
import os
import re


def on_config(config):
    """The decisions are listed by their files."""
    adr = os.path.join(config["docs_dir"], "adr")
    pages = sorted("adr/" + name for name in os.listdir(adr) if re.match(r"\d+-.*\.md$", name))
    for group in config["nav"]:
        if "Design" in group:
            group["Design"] = [e for e in group["Design"] if e != {"Decisions": "adr"}] + [{"Decisions": pages}]
    return config


def on_page_markdown(markdown, page, config, files):
    """A link out of docs/ leads to no page of the site: its text stays."""
    base = os.path.dirname(page.file.src_path)

    def replace(found):
        text, target = found.group(1), found.group(2)
        if re.match(r"[a-z]+:|#", target):
            return found.group(0)
        path = os.path.normpath(os.path.join(base, target.split("#")[0]))
        if path == "adr":
            return found.group(0).replace(target, os.path.relpath("adr/0001-one-timeline-three-logs.md", base or "."))
        return text if path.startswith("..") else found.group(0)

    return re.sub(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)", replace, markdown)


def on_page_content(html, page, config, files):
    """Names of settings and flags stay whole in tables."""
    return "<style>.md-typeset td:first-child code{white-space:nowrap}</style>" + html
