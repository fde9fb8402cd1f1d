//! `tollkeeper serve`

use std::net::SocketAddr;

use clap::Args;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tollkeeper::api;
use tollkeeper::config::Config;
use tollkeeper::directory::demo::{DemoLogin, make_demo};
use tollkeeper::identity::FirstAdmin;
use tollkeeper::listen::{self, Patience};
use tollkeeper::services::Services;
use tollkeeper_app::server::pages;

use super::{Done, Failure, clock, open};

#[derive(Args)]
pub(super) struct Arguments {
    /// Add demo data to an empty database, and let the built-in demo model answer where no provider is configured.
    #[arg(long)]
    demo: bool,
}

pub(super) async fn run(arguments: Arguments, config: Config) -> Done {
    let store = open(&config).await?;
    let address = config.addr;
    let configured_admin = config.first_admin.clone();
    for variable in config.disabled_limits().into_iter().filter(|_| config.production) {
        tracing::warn!("{variable} is 0: that limit is disabled for every workspace without an override");
    }
    let services = Services::start(config, store, clock(), arguments.demo).await.map_err(Failure::Failed)?;

    let demo = if arguments.demo { make_demo(&services.store, &*services.clock).await? } else { None };
    let admin = configured_admin.as_ref().map(|admin| (admin.email.as_str(), admin.password.as_str()));
    let first_admin = services.identity.first_admin(admin).await?;

    let listener = TcpListener::bind(address).await.map_err(|error| {
        Failure::Failed(format!(
            "TOLLKEEPER_ADDR: {address} can't be listened on: {error}; choose another port"
        ))
    })?;
    let at = listener.local_addr().unwrap_or(address);
    greet(at, demo.as_deref(), &first_admin);

    let router = api::with_layers(api::router(&services).merge(pages(services.clone())), &services);
    let stopping = services.stopping.clone();
    tokio::spawn(async move {
        terminated().await;
        tracing::info!("stopping: no new requests are taken");
        stopping.cancel();
    });
    listen::serve(listener, router, services.stopping.clone(), Patience::default()).await;
    services.stop().await;
    Ok(())
}

/// Ends at SIGTERM or Ctrl-C.
async fn terminated() {
    let (Ok(mut term), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        tracing::warn!("signals can't be listened to: stopping the server loses what is under way");
        return std::future::pending().await;
    };
    tokio::select! {
        _ = term.recv() => {}
        _ = interrupt.recv() => {}
    }
}

fn greet(at: SocketAddr, demo: Option<&[DemoLogin]>, first_admin: &FirstAdmin) {
    println!("Tollkeeper is on http://{at}");
    if let Some(logins) = demo {
        println!("Demo data was made. Sign in as");
        for DemoLogin { email, role, password } in logins {
            println!("  {email:24} {password:20} {role}");
        }
    }
    match first_admin {
        FirstAdmin::Present => {}
        FirstAdmin::Created => println!("The first platform admin was made from TOLLKEEPER_ADMIN_EMAIL."),
        FirstAdmin::SetUp { token } => println!(
            "There is no platform admin yet. Make one at http://{at}/setup?token={token} (this link works once)."
        ),
    }
}
