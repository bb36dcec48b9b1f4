/** Who prompts, as the turns of wakes say. */
export const SOURCE = 'network'
