import { readRegularFile } from '../../../../kernel/kit/read-file.js'

/** Larger files are bundles or data, and a line in them helps no one. */
const MAX_BYTES = 1024 * 1024

/** The modules of an extension by path, without its packages. */
export async function* readSources(
  files: readonly { readonly relative: string; readonly absolute: string }[],
): AsyncIterable<{ readonly file: string; readonly text: string }> {
  for (const { relative, absolute } of files) {
    if (!/\.[cm]?js$/.test(relative) || relative.split('/').includes('node_modules')) continue
    const bytes = await readRegularFile(absolute, { maxBytes: MAX_BYTES }).catch(() => undefined)
    if (bytes) yield { file: relative, text: bytes.toString() }
  }
}
