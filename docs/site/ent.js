// Colours specs and commands: mdBook's highlighter does not know `.ent`, and takes output for code.
(function () {
    "use strict";
    if (!window.hljs) {
        return;
    }
    hljs.registerLanguage("ent", function (hljs) {
        return {
            keywords: {
                keyword:
                    "import as let param model service hardware node board carbon objective pin profile minimize limit",
                literal:
                    "true false idle off mig mps whole poisson uniform fitted table gpu gpus power energy cost queueing execution",
                built_in: "min max round csv trace gamma",
            },
            contains: [
                hljs.C_LINE_COMMENT_MODE,
                hljs.QUOTE_STRING_MODE,
                { className: "title", begin: /\bp[0-9]+(\.[0-9]+)?\b/ },
                { className: "symbol", begin: /\b[0-9]+g\.[0-9]+gb(\+me)?\b/ },
                { className: "number", begin: /\b[0-9][0-9_.]*( ?(%|[a-zA-Zµ]+(\/[a-zA-Z0-9]+)?\b))?/ },
                { className: "attr", begin: /\b[a-z_]+(?= *=)/ },
            ],
        };
    });

    function again(block) {
        const text = block.textContent;
        block.removeAttribute("data-highlighted");
        block.textContent = text;
        return text;
    }

    document.querySelectorAll("code.language-ent").forEach(function (block) {
        block.innerHTML = hljs.highlight("ent", again(block), true).value;
    });
    document.querySelectorAll("code.language-console").forEach(function (block) {
        const lines = again(block).split("\n");
        block.textContent = "";
        lines.forEach(function (line, index) {
            const part = document.createElement("span");
            part.className = /^(\$|>) /.test(line) ? "command" : "output";
            part.textContent = line;
            block.append(part, index + 1 < lines.length ? "\n" : "");
        });
    });
})();
