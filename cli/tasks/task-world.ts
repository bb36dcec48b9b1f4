import type { TaskContext } from '../../plugins/work/session-commands/task-context.js'
import type { Io } from '../io.js'
import type { Output } from '../show/output.js'

/** Commands that show a stream and read lines at the same time. */
const live: ReadonlySet<string> = new Set(['run', 'session prompt', 'session attach'])
/** Commands that start the daemon when it is not running. */
const starting: ReadonlySet<string> = new Set(['run'])

/** Whether the command shows a stream, so that its output goes through a screen. */
export const isLive = (path: string) => live.has(path)

/** Whether the command starts the daemon when it is not running. */
export const startsDaemon = (path: string) => starting.has(path)

/** The additional context of live commands. */
export async function taskWorld(out: Output, io: Io, home: string): Promise<Partial<TaskContext>> {
  const { screen } = io
  const [{ MarkdownText }, { wrapText }] = await Promise.all([import('../show/markdown.js'), import('../show/text.js')])
  const isStyled = out.color('bold', 'x') !== 'x'
  const paint = isStyled ? { paint: out.color.bind(out) } : {}
  const isWrapped = Number.isFinite(out.width)
  return {
    wrap: wrapText,
    every(ms, fn) {
      const timer = setInterval(fn, ms).unref()
      return () => clearInterval(timer)
    },
    async watchFolder(root) {
      return (await import('./folder-changes.js')).watchWorkspace(root, home)
    },
    ...(io.piped && { piped: io.piped }),
    ...(screen && {
      screen,
      async compose(text) {
        const { composeText } = await import('./external-editor.js')
        return composeText(text, io)
      },
    }),
    ...(isWrapped && {
      // One column stays free, because some terminals wrap a line that exactly fills them.
      markdown: () => new MarkdownText({ write: text => out.text(text), width: () => out.width - 1, ...paint }),
    }),
  }
}
