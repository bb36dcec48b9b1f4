/** In `cache/` of a home: the settings of the extensions that its daemon has loaded, as JSON Schemas. */
export const SETTINGS_CACHE = 'settings.json'
