const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}
const escaped = (text: string) => text.replace(/[&<>"']/g, char => ESCAPES[char] ?? '')

/** The page at the end of a login; both texts are untrusted and escaped. */
export const page = (title: string, text: string): string => `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${escaped(title)}</title>
<meta name="viewport" content="width=device-width"></head>
<body style="font:16px/1.5 system-ui;max-width:40em;margin:4em auto;padding:0 1em">
<h1 style="font-size:1.3em">${escaped(title)}</h1><p>${escaped(text)}</p></body></html>
`

/** The page must not load resources, be cached, or be framed. */
export const PAGE_HEADERS = {
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
}
