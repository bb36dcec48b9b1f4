/** Content types that an agent accepts in prompts. */
export interface PromptAbilities {
  readonly image: boolean
  readonly audio: boolean
  readonly embeddedContext: boolean
}

/** A content block of a prompt. */
export type Block = Readonly<Record<string, unknown>>

/** The blocks of a prompt. The person's text comes last, after the files. */
export function promptBlocks(texts: readonly string[], files: readonly Block[]): Block[] {
  const blocks: Block[] = texts.map(text => ({ type: 'text', text }))
  return [...blocks.slice(0, -1), ...files, ...blocks.slice(-1)]
}
