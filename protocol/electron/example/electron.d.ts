// The part of Electron's declarations that the example uses, word for word where it matters, so that
// the types can be checked without downloading Electron.
declare module "electron" {
  interface WebPreferences {
    preload?: string;
    additionalArguments?: string[];
    contextIsolation?: boolean;
    nodeIntegration?: boolean;
    sandbox?: boolean;
  }

  interface IpcMainInvokeEvent {
    frameId: number;
    processId: number;
    sender: NodeJS.EventEmitter;
    readonly senderFrame: { readonly url: string; readonly parent: object | null } | null;
  }

  const app: {
    whenReady(): Promise<void>;
    quit(): void;
    getPath(name: "userData"): string;
    getLocale(): string;
    on(event: "before-quit", listener: (event: { preventDefault(): void }) => void): void;
  };

  const ipcMain: {
    handle(
      channel: string,
      listener: (event: IpcMainInvokeEvent, ...args: any[]) => Promise<any> | any,
    ): void;
    removeHandler(channel: string): void;
  };

  const dialog: {
    showOpenDialog(options: { properties: "openDirectory"[] }): Promise<{ filePaths: string[] }>;
  };

  class BrowserWindow {
    constructor(options?: { webPreferences?: WebPreferences });
    loadFile(path: string): Promise<void>;
  }
}
